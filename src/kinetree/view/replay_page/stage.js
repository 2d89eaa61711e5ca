// The mechanism at a time as a picture: items (range of faces, matrix, color), marks (items that nothing hides), lines,
// floor, light and camera.

const ARROW_COLORS = { reactions: [0.78, 0.19, 0.16], drives: [0.48, 0.25, 0.64], wrenches: [0.18, 0.49, 0.2] };

function bytes(text) {
  return Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer;
}

class Stage {
  constructor(data, canvas, overlay) {
    this.data = data;
    this.canvas = canvas;
    this.overlay = overlay;
    this.poses = new Float32Array(bytes(data.poses));
    const solids = { vertices: new Float32Array(bytes(data.vertices)), faces: new Uint32Array(bytes(data.faces)) };
    this.renderer = webglRenderer(canvas, solids);
    this.isPlain = this.renderer === null;
    if (this.isPlain) this.renderer = painterRenderer(canvas, solids);
    this.solids = solids;
    this.paper = null; // a canvas for print, on which the picture is painted too
    this.up = data.camera.axes[2];
    const [e1, e2] = data.camera.axes;
    this.light = unit(add(this.up, add(scale(0.35, e1), scale(-0.45, e2))));
    this.shadow = shadowMatrix(this.light, this.up, data.floor);
    this.arrows = (data.arrows || []).map((arrow) => ({ ...arrow, rows: new Float32Array(bytes(arrow.rows)) }));
    this.trails = data.tips.map(([body, point]) => this.trail(body, point));
  }

  matrices(frame) {
    const { data } = this;
    const a = Math.min(Math.floor(frame), data.frames - 1);
    const b = Math.min(a + 1, data.frames - 1);
    const row = 7 * data.bodies.length;
    return data.bodies.map((_, i) => poseBetween(this.poses, a * row + 7 * i, b * row + 7 * i, frame - a));
  }

  trail(body, point) {
    const out = new Float32Array(3 * this.data.frames);
    const row = 7 * this.data.bodies.length;
    for (let k = 0; k < this.data.frames; k++) {
      const at = k * row + 7 * body;
      out.set(transform(poseBetween(this.poses, at, at, 0), point), 3 * k);
    }
    return out;
  }

  middle(frame) {
    const places = this.matrices(frame).map((m) => [m[12], m[13], m[14]]);
    return places.length ? scale(1 / places.length, places.reduce(add)) : [0, 0, 0];
  }

  floorLines(target) {
    const { data } = this;
    const [e1, e2, up] = data.camera.axes;
    const cells = 14;
    const reach = cells * data.cell;
    const middle = [e1, e2].map((e) => Math.round(dot(target, e) / data.cell) * data.cell);
    const place = (x, y) => add(scale(data.floor, up), add(scale(middle[0] + x, e1), scale(middle[1] + y, e2)));
    const points = [];
    for (let k = -cells; k <= cells; k++) {
      const x = k * data.cell;
      points.push(...place(x, -reach), ...place(x, 0), ...place(x, 0), ...place(x, reach));
      points.push(...place(-reach, x), ...place(0, x), ...place(0, x), ...place(reach, x));
    }
    return { points: new Float32Array(points), color: [0.55, 0.62, 0.70, 0.6], middle: place(0, 0), reach };
  }

  axisLines(matrices, length) {
    const colors = [[0.8, 0.2, 0.15, 1], [0.15, 0.6, 0.2, 1], [0.15, 0.35, 0.85, 1]];
    return colors.map((color, k) => {
      const points = [];
      for (const m of [IDENTITY, ...matrices]) {
        const from = [m[12], m[13], m[14]];
        points.push(...from, ...add(from, scale(length, [m[4 * k], m[4 * k + 1], m[4 * k + 2]])));
      }
      return { points: new Float32Array(points), color, thick: true };
    });
  }

  draw(frame, view, show) {
    const { data, canvas, overlay } = this;
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    for (const c of [canvas, overlay, ...(this.paper ? [this.paper] : [])]) {
      const [w, h] = [Math.max(1, Math.round(c.clientWidth * ratio)), Math.max(1, Math.round(c.clientHeight * ratio))];
      if (c.width !== w || c.height !== h) [c.width, c.height] = [w, h];
    }
    const matrices = this.matrices(frame);
    const all = [...matrices, IDENTITY]; // the ground's mesh is the last of the bodies'
    const items = all.map((matrix, i) => ({ matrix, first: data.ranges[i][0], count: data.ranges[i][1] }));
    const [first, count] = data.ranges[data.bodies.length + 1];
    for (const rod of data.rods) {
      const [from, to] = [[rod.a, rod.pa], [rod.b, rod.pb]].map(([k, p]) => (k < 0 ? p : transform(matrices[k], p)));
      items.push({ matrix: rodMatrix(from, to, rod.radius), first, count, color: rod.color });
    }
    const camera = cameraMatrices({ ...data.camera, ...view }, canvas.width / canvas.height);
    const lines = [];
    if (show.trails) {
      const done = 3 * (Math.floor(frame) + 1);
      for (const points of this.trails) {
        lines.push({ points, strip: true, color: [0.78, 0.33, 0.24, 0.4] });
        lines.push({ points: points.subarray(0, done), strip: true, thick: true, color: [0.78, 0.33, 0.24, 1] });
      }
    }
    if (show.axes) lines.push(...this.axisLines(matrices, 0.12 * data.size));
    const picture = {
      camera, lines, floor: [this.floorLines(view.target)], up: this.up, light: this.light, shadow: this.shadow,
      items: items.filter((item) => item.count > 0), marks: this.arrowItems(frame, show),
    };
    this.renderer.draw(picture);
    this.overlay.getContext("2d").clearRect(0, 0, this.overlay.width, this.overlay.height);
    this.drawNames(show.names ? matrices : [], camera, ratio);
    if (show.values) this.drawValues(frame, show, camera, ratio);
    if (this.paper) this.paint(picture);
  }

  // Paint on the canvas for print. It gets finished images: in print, a cleared canvas covers what is below it.
  paint(picture) {
    const sheet = document.createElement("canvas");
    [sheet.width, sheet.height] = [this.paper.width, this.paper.height];
    painterRenderer(sheet, this.solids).draw(picture);
    const pen = this.paper.getContext("2d");
    pen.drawImage(sheet, 0, 0);
    pen.drawImage(this.overlay, 0, 0);
  }

  // Origin, tip and size of every arrow that is shown, the largest first.
  arrowsAt(frame, show) {
    const a = Math.min(Math.floor(frame), this.data.frames - 1);
    const b = Math.min(a + 1, this.data.frames - 1);
    const share = frame - a;
    return this.arrows.filter((arrow) => show[arrow.group]).map((arrow) => {
      const row = [0, 1, 2, 3, 4, 5].map((k) => (1 - share) * arrow.rows[6 * a + k] + share * arrow.rows[6 * b + k]);
      const [origin, vector] = [row.slice(0, 3), row.slice(3)];
      const size = Math.hypot(...vector);
      return { arrow, size, length: size * arrow.length, origin, tip: add(origin, scale(arrow.length, vector)) };
    }).sort((one, other) => other.length - one.length);
  }

  // A shaft and a head; torques have two heads. Arrows shorter than the shaft is thick are left out.
  arrowItems(frame, show) {
    const { data } = this;
    const [shaft, head] = [data.bodies.length + 1, data.bodies.length + 2].map((k) => data.ranges[k]);
    const thick = 0.006 * data.size;
    const items = [];
    for (const { arrow, length, origin, tip } of this.arrowsAt(frame, show)) {
      if (length < 2 * thick) continue;
      const color = ARROW_COLORS[arrow.group];
      const along = unit(sub(tip, origin));
      const top = Math.min(8 * thick, 0.4 * length);
      const heads = arrow.unit === "N" ? [tip] : [tip, sub(tip, scale(0.8 * top, along))];
      const neck = sub(heads[heads.length - 1], scale(0.9 * top, along));
      items.push({ matrix: rodMatrix(origin, neck, thick), first: shaft[0], count: shaft[1], color });
      for (const end of heads) {
        const matrix = rodMatrix(sub(end, scale(top, along)), end, Math.min(2.6 * thick, 0.4 * top));
        items.push({ matrix, first: head[0], count: head[1], color });
      }
    }
    return items;
  }

  // Names and sizes beside the tips; a label that would cover that of a larger arrow is left out.
  drawValues(frame, show, camera, ratio) {
    const pen = this.overlay.getContext("2d");
    const { width, height } = this.overlay;
    const m = camera.both;
    pen.font = `${12 * ratio}px system-ui, "DejaVu Sans", sans-serif`;
    pen.lineWidth = 3 * ratio;
    pen.lineJoin = "round";
    const taken = [];
    for (const { arrow, size, length, tip } of this.arrowsAt(frame, show)) {
      if (length < 0.01 * this.data.size) continue;
      const w = m[3] * tip[0] + m[7] * tip[1] + m[11] * tip[2] + m[15];
      if (w < camera.near) continue;
      const [x, y] = transform(m, tip);
      const text = `${arrow.name} ${Number(size.toPrecision(3))} ${arrow.unit}`;
      const wide = pen.measureText(text).width;
      const left = Math.min((0.5 + (0.5 * x) / w) * width + 8 * ratio, width - wide - 6 * ratio);
      const low = Math.min(height - 6 * ratio, Math.max(14 * ratio, (0.5 - (0.5 * y) / w) * height - 6 * ratio));
      const covers = (box) => Math.abs(box.low - low) < 15 * ratio && left < box.left + box.wide && box.left < left + wide;
      if (taken.some(covers)) continue;
      taken.push({ left, low, wide });
      pen.strokeStyle = "rgba(255, 255, 255, 0.9)";
      pen.strokeText(text, left, low);
      pen.fillStyle = `rgb(${ARROW_COLORS[arrow.group].map((c) => Math.round(200 * c)).join(", ")})`;
      pen.fillText(text, left, low);
    }
  }

  drawNames(matrices, camera, ratio) {
    const pen = this.overlay.getContext("2d");
    const { width, height } = this.overlay;
    pen.font = `${12 * ratio}px system-ui, "DejaVu Sans", sans-serif`;
    pen.lineWidth = 3 * ratio;
    pen.lineJoin = "round";
    const m = camera.both;
    matrices.forEach((pose, i) => {
      const p = [pose[12], pose[13], pose[14]];
      const w = m[3] * p[0] + m[7] * p[1] + m[11] * p[2] + m[15];
      if (w < camera.near) return;
      const [x, y] = transform(m, p);
      const at = [(0.5 + (0.5 * x) / w) * width + 9 * ratio, (0.5 - (0.5 * y) / w) * height - 7 * ratio];
      pen.strokeStyle = "rgba(255, 255, 255, 0.85)";
      pen.strokeText(this.data.bodies[i], ...at);
      pen.fillStyle = "#26303d";
      pen.fillText(this.data.bodies[i], ...at);
    });
  }
}
