// The mechanism at a time as a picture: items (range of faces, matrix, color), lines, floor, light and camera.

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
    this.up = data.camera.axes[2];
    const [e1, e2] = data.camera.axes;
    this.light = unit(add(this.up, add(scale(0.35, e1), scale(-0.45, e2))));
    this.shadow = shadowMatrix(this.light, this.up, data.floor);
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
    for (const c of [canvas, overlay]) {
      const [w, h] = [Math.max(1, Math.round(c.clientWidth * ratio)), Math.max(1, Math.round(c.clientHeight * ratio))];
      if (c.width !== w || c.height !== h) [c.width, c.height] = [w, h];
    }
    const matrices = this.matrices(frame);
    const all = [...matrices, IDENTITY]; // the ground's mesh is the last of the bodies'
    const items = all.map((matrix, i) => ({ matrix, first: data.ranges[i][0], count: data.ranges[i][1] }));
    const [first, count] = data.ranges[data.ranges.length - 1];
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
    this.renderer.draw({
      camera, lines, floor: [this.floorLines(view.target)], up: this.up, light: this.light, shadow: this.shadow,
      items: items.filter((item) => item.count > 0),
    });
    this.drawNames(show.names ? matrices : [], camera, ratio);
  }

  drawNames(matrices, camera, ratio) {
    const pen = this.overlay.getContext("2d");
    const { width, height } = this.overlay;
    pen.clearRect(0, 0, width, height);
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
