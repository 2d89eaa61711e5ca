// The stage: the mechanism in three dimensions. `compose` returns what is to be drawn, as a scene:
//   { matrices: one per body, show: { names, axes, ... }, hidden: Set of bodies, picked: body or -1, isPlaying,
//     trails: lines as trails.js makes them, arrows: [{ name, group, unit, origin, vector, length }], layers: [...] }
// A layer is what a panel adds: { items, lines, over, marks, labels, arrows, places }, each a list and each optional;
// with `faded`, an alpha, bodies fade behind it; `places` are points that stay in the picture.
//   item: { matrix, solid: "rod" | "cone" | "ball", color, alpha }
//   line: { points, strip, color, width, fades, fits }: one that `fades` is clear at its first point, and what the view
//         is fitted to has the lines that `fits` too
//   label: { text, at, color, strong }                           marks are items, and over lines, that nothing hides.
// `refresh` draws at the next frame of the screen.

import { el } from "./elements.js";
import { oncePerFrame } from "./frames.js";
import { Framing, inUnits } from "./framing.js";
import { ellipsoids, jointLines, massItems, pointMasses } from "./inertia_marks.js";
import { drawLabels } from "./labels.js";
import { painterRenderer } from "./painter.js";
import { pickItem } from "./picking.js";
import { arrowItems, shownArrows, stageLabels } from "./stage_arrows.js";
import { axisLines, bodyItems, floorLines, frameMatrices } from "./stage_items.js";
import { IDENTITY, add, originOf, rayThrough, scale, shadowMatrix, sub, unit } from "./vectors.js";
import { View } from "./view.js";
import { webglRenderer } from "./webgl.js";

const ARROW = 0.2; // of the picture: the longest arrow
const [SLOW, LATE] = [45, 4]; // [ms] between two pictures of a motion; so many slower ones in a row are late
const FAR = 1e6; // [m] a picture from farther away, or from nearer than its inverse, is drawn in other units

// The solids of a drawing: nine numbers per vertex (position, normal, color), and corners of triangles. A page has the
// numbers in nine rows, and the steps from corner to corner modulo 2^32 (page/data.py).
function solidsOf({ vertices, faces }) {
  const count = vertices.length / 9;
  let corner = 0;
  return {
    vertices: vertices.map((_, k) => vertices[(k % 9) * count + Math.floor(k / 9)]),
    faces: faces.map((step) => (corner = (corner + step) >>> 0)),
  };
}

export class Stage {
  constructor(host, scene, model, { embedded = false } = {}) {
    this.host = host;
    this.scene = scene;
    this.model = model;
    this.canvas = host.querySelector(".solid");
    this.overlay = host.querySelector(".overlay");
    this.solids = solidsOf(scene);
    this.renderer = webglRenderer(this.canvas, this.solids);
    this.isPlain = this.renderer === null;
    if (this.isPlain) this.renderer = painterRenderer(this.canvas, this.solids);
    this.arrows = []; // those of the last picture
    this.drawn = 0; // the number of labels on the overlay
    this.pace = { before: 0, late: 0 }; // the last picture of a motion [ms], and how many of them came late
    this.paper = null; // a canvas for print, on which the picture is painted too
    this.up = scene.camera.axes[2];
    const [e1, e2] = scene.camera.axes;
    this.light = unit(add(this.up, add(scale(0.35, e1), scale(-0.45, e2))));
    this.palette = null;
    this.compose = () => null;
    this.refresh = oncePerFrame(() => this.draw());
    this.follow = scene.follows;
    this.view = new View(host, scene.camera, { embedded, changed: () => this.refresh() });
    if (this.follow) this.view.first.target = [0, 0, 0]; // an offset from the middle of the bodies
    this.view.reset();
    this.framing = new Framing(this);
    this.chip = el("button", { type: "button", class: "chip", text: "bring back", hidden: true });
    this.chip.title = "fit the mechanism into the picture (4)";
    this.chip.addEventListener("pointerdown", (event) => event.stopPropagation()); // it does not rotate the view
    this.chip.addEventListener("click", () => this.fit());
    host.append(this.chip);
    this.view.pick = (camera, x, y) => pickItem(this.items || [], this.solids, camera.eye, rayThrough(camera, x, y));
    this.sizes = new ResizeObserver(() => this.refresh());
    this.sizes.observe(host);
  }

  // Draw no more, and free the memory of the graphics processor: browsers keep few contexts.
  close() {
    this.compose = () => null;
    this.sizes.disconnect();
    this.renderer.close?.();
  }

  // Colors of the theme, from the style sheet.
  readTheme() {
    const style = getComputedStyle(this.host);
    const value = (name, other) => style.getPropertyValue(name).trim() || other;
    const numbers = (name, other) => value(name, other).split(",").map(Number);
    this.palette = {
      text: value("--ink", "#26303d"),
      halo: value("--halo", "rgba(255, 255, 255, 0.9)"),
      font: style.fontFamily,
      floor: numbers("--floor", "0.55,0.62,0.70,0.55"),
      shade: numbers("--shade", "0.12,0.17,0.24,0.16"),
      trail: numbers("--trail", "0.78,0.33,0.24,1"),
      accent: numbers("--mark", "0.12,0.42,0.72,1"),
      scale: Number(value("--label", "1")),
      stroke: Number(value("--stroke", "1.6")) / 1.6, // of trails and other lines
      lift: Number(value("--lift", "0")),
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
    this.view.first.target = on ? [0, 0, 0] : [...this.scene.camera.target];
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
    if (scene.show.follow !== undefined) this.setFollow(scene.show.follow, scene.matrices);
    this.framing.resize(scene);
    const middle = this.follow ? this.middle(scene.matrices) : [0, 0, 0];
    this.chip.hidden = !this.framing.keep(scene, middle);
    const target = add(middle, this.view.target);
    const { aspect } = this.framing;
    const { distance } = this.view;
    const camera = (this.view.shown = this.view.matrices(aspect, target));
    scene.longest = (ARROW * 2 * distance * Math.min(1, aspect)) / camera.f;
    const picture = { ...this.picture(scene, camera, target), isHurried: this.isHurried(scene) };
    this.items = picture.items;
    this.renderer.draw(
      distance > 1 / FAR && distance < FAR
        ? picture
        : inUnits(picture, 1 / distance, this.view.matrices(aspect, scale(1 / distance, target), 1)),
    );
    const labels = stageLabels(this, scene);
    if (this.drawn)
      overlay.getContext("2d", { willReadFrequently: true }).clearRect(0, 0, overlay.width, overlay.height);
    this.drawn = labels.length ? drawLabels(overlay, labels, camera, ratio, this.palette) : 0;
    if (this.paper) this.paint(picture);
  }

  // Whether pictures of a motion that plays come so late that meshes are to be drawn with fewer triangles: from then on
  // until it stops.
  isHurried({ isPlaying }) {
    const now = performance.now();
    const { before, late } = this.pace;
    const isLate = before > 0 && now - before > SLOW;
    this.pace = isPlaying ? { before: now, late: late >= LATE ? late : isLate ? late + 1 : 0 } : { before: 0, late: 0 };
    return this.pace.late >= LATE;
  }

  picture(scene, camera, target) {
    const { show, matrices } = scene;
    const { floor } = this.scene;
    const layers = scene.layers || [];
    const items = [
      ...bodyItems(this, scene, Math.min(1, ...layers.map((layer) => layer.faded ?? 1))),
      ...(scene.ghost ? bodyItems(this, { ...scene, matrices: scene.ghost, picked: -1 }, 0.25) : []),
    ];
    const { trail, stroke } = this.palette;
    const thick = (all) => (stroke === 1 ? all : all.map((x) => ({ ...x, width: stroke * (x.width || 1) })));
    const lines = (scene.trails || []).map((line) =>
      line.soft ? { ...line, color: [...trail.slice(0, 3), 0.3], width: 1.2 } : { ...line, color: trail, width: 2 },
    );
    const over = []; // lines that nothing hides
    if (show.axes)
      over.push(...axisLines([IDENTITY, ...matrices, ...frameMatrices(this.model, matrices)], 0.15 * this.scene.size));
    if (show.joints) over.push(...jointLines(this, matrices));
    if (show.ellipsoids) items.push(...ellipsoids(this, scene));
    this.arrows = shownArrows(scene);
    const marks = this.arrows.flatMap((arrow) => arrowItems(this, arrow));
    if (show.masses) marks.push(...massItems(this, scene));
    if (show.points) marks.push(...pointMasses(this, scene));
    for (const layer of layers) {
      items.push(...(layer.items || []).map((item) => this.stretched(item)));
      marks.push(...(layer.marks || []).map((item) => this.stretched(item)));
      lines.push(...(layer.lines || []));
      over.push(...(layer.over || []));
    }
    return {
      camera,
      lines: thick(lines),
      over: thick(over),
      marks,
      items: items.filter((item) => item.count > 0 && !item.isBeam),
      up: this.up,
      light: this.light,
      floor: floor === null || show.floor === false ? [] : [floorLines(this, target)],
      shadow: floor === null || show.floor === false ? null : shadowMatrix(this.light, this.up, floor),
      shade: this.palette.shade,
      lift: this.palette.lift,
    };
  }

  solid(name) {
    const [first, count] = this.scene.ranges[this.scene.solids[name]];
    return { first, count };
  }

  stretched(item) {
    return item.solid ? { ...this.solid(item.solid), ...item } : item;
  }

  // Fit the mechanism into the picture; with poses `along` a motion, all of them.
  fit(along = []) {
    const scene = this.compose();
    if (!scene) return;
    const points = [
      ...[scene, ...along.map((matrices) => ({ ...scene, matrices }))].flatMap((one) => this.framing.extent(one)),
      ...(scene.layers || []).flatMap((layer) =>
        (layer.lines || [])
          .filter((line) => line.fits)
          .flatMap(({ points: p }) => {
            return Array.from({ length: p.length / 3 }, (_, k) => [p[3 * k], p[3 * k + 1], p[3 * k + 2]]);
          }),
      ),
    ];
    const middle = this.follow ? this.middle(scene.matrices) : [0, 0, 0];
    this.view.fit(
      points.map((p) => sub(p, middle)),
      this.canvas.width / this.canvas.height,
    );
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
