// The stage: the mechanism in three dimensions. `compose` returns what is to be drawn, as a scene:
//   { matrices: one per body, show: { names, axes, ... }, hidden: Set of bodies, picked: body or -1,
//     trails: [{ points, done, color }], arrows: [{ name, group, unit, origin, vector, length }], layers: [layer, ...] }
// A layer is what a panel adds: { items, lines, marks, labels, arrows }, each a list and each optional.
//   item: { matrix, solid: "rod" | "cone" | "ball", color, alpha }       line: { points, strip, color, width }
//   label: { text, at, color, strong }                                   marks are items that nothing hides.
// `refresh` draws at the next frame of the screen.

import { oncePerFrame } from "./frames.js";
import { ellipsoids, jointLines, massItems, pointMasses } from "./inertia_marks.js";
import { drawLabels } from "./labels.js";
import { painterRenderer } from "./painter.js";
import { pickItem } from "./picking.js";
import {
  IDENTITY, add, columns, dot, multiply, originOf, rayThrough, rodMatrix, scale, shadowMatrix, sub, transform, unit,
} from "./vectors.js";
import { View } from "./view.js";
import { webglRenderer } from "./webgl.js";

export const ARROW_COLORS = { reactions: [0.78, 0.19, 0.16], drives: [0.48, 0.25, 0.64], wrenches: [0.18, 0.49, 0.2] };
const AXES = [[0.8, 0.2, 0.15, 1], [0.15, 0.6, 0.2, 1], [0.15, 0.35, 0.85, 1]];
const LABELED = 0.01; // of the size of the mechanism: shorter arrows have no label

export class Stage {
  constructor(host, scene, model, { embedded = false } = {}) {
    Object.assign(this, { host, scene, model });
    this.canvas = host.querySelector(".solid");
    this.overlay = host.querySelector(".overlay");
    this.solids = { vertices: scene.vertices, faces: scene.faces };
    this.renderer = webglRenderer(this.canvas, this.solids);
    this.isPlain = this.renderer === null;
    if (this.isPlain) this.renderer = painterRenderer(this.canvas, this.solids);
    this.paper = null; // a canvas for print, on which the picture is painted too
    this.up = scene.camera.axes[2];
    const [e1, e2] = scene.camera.axes;
    this.light = unit(add(this.up, add(scale(0.35, e1), scale(-0.45, e2))));
    this.shadow = scene.floor === null ? null : shadowMatrix(this.light, this.up, scene.floor);
    this.palette = null;
    this.compose = () => null;
    this.refresh = oncePerFrame(() => this.draw());
    this.follow = scene.follows;
    this.view = new View(host, scene.camera, { embedded, changed: () => this.refresh() });
    if (this.follow) this.view.first.target = [0, 0, 0]; // an offset from the middle of the bodies
    this.view.reset();
    this.view.pick = (camera, x, y) => pickItem(this.items || [], this.solids, camera.eye, rayThrough(camera, x, y));
    new ResizeObserver(() => this.refresh()).observe(host);
  }

  // Colors of the theme, from the style sheet.
  readTheme() {
    const style = getComputedStyle(this.host);
    const value = (name, other) => style.getPropertyValue(name).trim() || other;
    const numbers = (name, other) => value(name, other).split(",").map(Number);
    this.palette = {
      text: value("--ink", "#26303d"), halo: value("--halo", "rgba(255, 255, 255, 0.9)"), font: style.fontFamily,
      floor: numbers("--floor", "0.55,0.62,0.70,0.55"), shade: numbers("--shade", "0.12,0.17,0.24,0.16"),
      trail: numbers("--trail", "0.78,0.33,0.24,1"), accent: numbers("--mark", "0.12,0.42,0.72,1"),
      scale: Number(value("--label", "1")),
    };
    this.refresh();
  }

  middle(matrices) {
    return matrices.length ? scale(1 / matrices.length, matrices.map(originOf).reduce(add)) : [0, 0, 0];
  }

  // The target is a point of the ground or, if the camera follows, an offset from the middle of the bodies.
  setFollow(on, matrices) {
    if (on === this.follow) return;
    const middle = this.middle(matrices);
    this.follow = on;
    this.view.target = on ? sub(this.view.target, middle) : add(this.view.target, middle);
    this.refresh();
  }

  draw() {
    const scene = this.compose();
    if (!scene) return;
    if (!this.palette) this.readTheme();
    const { canvas, overlay } = this;
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    for (const c of [canvas, overlay, ...(this.paper ? [this.paper] : [])]) {
      const [w, h] = [Math.max(1, Math.round(c.clientWidth * ratio)), Math.max(1, Math.round(c.clientHeight * ratio))];
      if (c.width !== w || c.height !== h) [c.width, c.height] = [w, h];
    }
    const target = this.follow ? add(this.middle(scene.matrices), this.view.target) : this.view.target;
    const camera = (this.view.shown = this.view.matrices(canvas.width / canvas.height, target));
    const picture = this.picture(scene, camera, target);
    this.items = picture.items;
    this.renderer.draw(picture);
    overlay.getContext("2d").clearRect(0, 0, overlay.width, overlay.height);
    this.drawn = drawLabels(overlay, this.labels(scene), camera, ratio, this.palette);
    if (this.paper) this.paint(picture);
  }

  picture(scene, camera, target) {
    const { show, matrices } = scene;
    const layers = scene.layers || [];
    const items = [...this.bodies(scene), ...(scene.ghost ? this.bodies({ ...scene, matrices: scene.ghost, picked: -1 }, 0.25) : [])];
    const lines = (scene.trails || []).flatMap(({ points, done, color = this.palette.trail }) => [
      { points, strip: true, color: [...color.slice(0, 3), 0.3], width: 1.2 },
      { points: points.subarray(0, done), strip: true, color, width: 2 },
    ]);
    if (show.axes) lines.push(...this.axisLines([IDENTITY, ...matrices, ...this.frames(matrices)], 0.09 * this.scene.size));
    if (show.joints) lines.push(...jointLines(this, matrices));
    if (show.masses) items.push(...massItems(this, scene));
    if (show.ellipsoids) items.push(...ellipsoids(this, scene));
    if (show.points) items.push(...pointMasses(this, scene));
    const marks = this.arrows(scene).flatMap((arrow) => this.arrowItems(arrow));
    for (const layer of layers) {
      items.push(...(layer.items || []).map((item) => this.stretched(item)));
      marks.push(...(layer.marks || []).map((item) => this.stretched(item)));
      lines.push(...(layer.lines || []));
    }
    return {
      camera, lines, marks, items: items.filter((item) => item.count > 0), up: this.up, light: this.light,
      floor: this.scene.floor === null || show.floor === false ? [] : [this.floorLines(target)],
      shadow: show.floor === false ? null : this.shadow, shade: this.palette.shade,
    };
  }

  // Bodies, the ground and rods; those of hidden bodies are left out, the picked one is tinted.
  bodies({ matrices, hidden, picked = -1 }, alpha = 1) {
    const { ranges, rods } = this.scene;
    const ground = matrices.length;
    const out = [];
    [...matrices, IDENTITY].forEach((matrix, i) => {
      if (hidden?.has(i) || (i === ground && alpha < 1)) return;
      const color = i === picked ? this.palette.accent.slice(0, 3) : undefined;
      out.push({ matrix, first: ranges[i][0], count: ranges[i][1], body: i === ground ? -1 : i, color, alpha });
    });
    for (const rod of rods) {
      const owner = rod.a < 0 ? rod.b : rod.a;
      if (hidden?.has(owner) || (rod.a < 0 && alpha < 1)) continue;
      const [from, to] = [[rod.a, rod.pa], [rod.b, rod.pb]].map(([k, p]) => (k < 0 ? p : transform(matrices[k], p)));
      const color = rod.a >= 0 && rod.a === picked ? this.palette.accent.slice(0, 3) : rod.color;
      out.push({ ...this.solid("rod"), matrix: rodMatrix(from, to, rod.radius), color, body: rod.a, alpha });
    }
    return out;
  }

  solid(name) {
    const [first, count] = this.scene.ranges[this.scene.solids[name]];
    return { first, count };
  }

  stretched(item) {
    return item.solid ? { ...this.solid(item.solid), ...item } : item;
  }

  frames(matrices) {
    return this.model.frames.map(({ body, pose }) => {
      const place = columns([pose[0], pose[4], pose[8]], [pose[1], pose[5], pose[9]], [pose[2], pose[6], pose[10]], [pose[3], pose[7], pose[11]]);
      return body < 0 ? place : multiply(matrices[body], place);
    });
  }

  floorLines(target) {
    const { cell, floor, camera } = this.scene;
    const [e1, e2, up] = camera.axes;
    const cells = 14;
    const reach = cells * cell;
    const middle = [e1, e2].map((e) => Math.round(dot(target, e) / cell) * cell);
    const place = (x, y) => add(scale(floor, up), add(scale(middle[0] + x, e1), scale(middle[1] + y, e2)));
    const points = [];
    for (let k = -cells; k <= cells; k++) {
      const x = k * cell;
      points.push(...place(x, -reach), ...place(x, 0), ...place(x, 0), ...place(x, reach));
      points.push(...place(-reach, x), ...place(0, x), ...place(0, x), ...place(reach, x));
    }
    return { points: new Float32Array(points), color: this.palette.floor, middle: place(0, 0), reach };
  }

  axisLines(matrices, length) {
    return AXES.map((color, k) => {
      const points = matrices.flatMap((m) => {
        const from = originOf(m);
        return [...from, ...add(from, scale(length, [m[4 * k], m[4 * k + 1], m[4 * k + 2]]))];
      });
      return { points: new Float32Array(points), color, width: 2 };
    });
  }

  // All arrows that are shown, with their tips, the largest first.
  arrows({ arrows = [], layers = [], show }) {
    return [...arrows, ...layers.flatMap((layer) => layer.arrows || [])].filter((arrow) => show[arrow.group] !== false).map((arrow) => {
      const size = Math.hypot(...arrow.vector);
      return { ...arrow, size, long: size * arrow.length, tip: add(arrow.origin, scale(arrow.length, arrow.vector)) };
    }).sort((one, other) => other.long - one.long);
  }

  // A shaft and a head; torques have two heads. Arrows shorter than the shaft is thick are left out.
  arrowItems({ group, unit: unitOf, long, origin, tip, color = ARROW_COLORS[group] }) {
    const thick = 0.006 * this.scene.size;
    if (long < 2 * thick) return [];
    const along = unit(sub(tip, origin));
    const top = Math.min(8 * thick, 0.4 * long);
    const heads = unitOf === "N" ? [tip] : [tip, sub(tip, scale(0.8 * top, along))];
    const neck = sub(heads[heads.length - 1], scale(0.9 * top, along));
    return [
      { ...this.solid("rod"), matrix: rodMatrix(origin, neck, thick), color },
      ...heads.map((end) => {
        const matrix = rodMatrix(sub(end, scale(top, along)), end, Math.min(2.6 * thick, 0.4 * top));
        return { ...this.solid("cone"), matrix, color };
      }),
    ];
  }

  labels(scene) {
    const { show, matrices, hidden, layers = [] } = scene;
    const out = layers.flatMap((layer) => layer.labels || []);
    if (show.values !== false) {
      for (const { name, group, size, long, unit: unitOf, tip, color = ARROW_COLORS[group] } of this.arrows(scene)) {
        if (long < LABELED * this.scene.size) continue;
        const paint = `rgb(${color.map((c) => Math.round(200 * c)).join(", ")})`;
        out.push({ text: `${name} ${Number(size.toPrecision(3))} ${unitOf}`, at: tip, color: paint });
      }
    }
    if (show.names) {
      this.model.bodies.forEach(({ name }, i) => {
        if (!hidden?.has(i)) out.push({ text: name, at: originOf(matrices[i]), strong: i === scene.picked });
      });
      this.frames(matrices).forEach((m, k) => out.push({ text: this.model.frames[k].name, at: originOf(m) }));
    } else if (scene.picked >= 0 && scene.picked < matrices.length) {
      out.push({ text: this.model.bodies[scene.picked].name, at: originOf(matrices[scene.picked]), strong: true });
    }
    return out;
  }

  // Points that enclose what is drawn, for the view that fits.
  extent(scene) {
    return this.bodies(scene).flatMap(({ matrix, first, count }) => {
      const out = [];
      for (let k = first; k < first + count; k += 7) {
        const v = 9 * this.solids.faces[k];
        out.push(transform(matrix, this.solids.vertices.subarray(v, v + 3)));
      }
      return out;
    });
  }

  fit() {
    const scene = this.compose();
    if (!scene) return;
    const points = this.extent(scene);
    const middle = this.follow ? this.middle(scene.matrices) : [0, 0, 0];
    this.view.fit(points.map((p) => sub(p, middle)), this.canvas.width / this.canvas.height);
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

  // The picture as a PNG, with the background of the theme.
  async image() {
    this.draw();
    const sheet = document.createElement("canvas");
    [sheet.width, sheet.height] = [this.canvas.width, this.canvas.height];
    const pen = sheet.getContext("2d");
    pen.fillStyle = getComputedStyle(this.host).backgroundColor;
    pen.fillRect(0, 0, sheet.width, sheet.height);
    pen.drawImage(this.canvas, 0, 0);
    pen.drawImage(this.overlay, 0, 0);
    return new Promise((done) => sheet.toBlob(done, "image/png"));
  }
}
