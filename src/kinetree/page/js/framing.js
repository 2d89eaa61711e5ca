// The mechanism stays in the picture: the camera moves when it would leave, until the reader moves the camera.

import { bodyItems } from "./stage_items.js";
import { add, columns, multiply, originOf, scale, sub, transform } from "./vectors.js";

const EDGE = 0.95; // of half the picture: farther out, the mechanism leaves it
const LOST = 0.5; // the part of the points in the picture below which a reader's own view has lost the mechanism
const SMALL = 0.12; // of half the picture: a mechanism at rest that is smaller is fitted into it
const EASED = 0.15; // [s] the time constant with which the camera goes to a new view during a motion
const STRETCH = 4; // a mechanism that is so many times longer or shorter than at first has thicker or thinner rods

export class Framing {
  constructor(stage) {
    this.stage = stage;
    this.size = stage.scene.size;
    this.cell = stage.scene.cell;
    this.floor = stage.scene.floor;
    this.boxes = new Map(); // corners of the boxes of solids, by their first face
    this.swept = null; // the box of a motion up to now
    this.goal = null; // a view to which the camera moves
    this.before = performance.now(); // [ms] when it moved last
  }

  // Corners of the boxes of all bodies and rods, and places of layers: they enclose what is drawn.
  extent(scene) {
    return bodyItems(this.stage, scene)
      .flatMap(({ matrix, first, count }) => this.box(first, count).map((p) => transform(matrix, p)))
      .concat((scene.layers || []).flatMap((layer) => layer.places || []))
      .filter((p) => p.every(Number.isFinite));
  }

  box(first, count) {
    if (!count) return [];
    if (!this.boxes.has(first)) {
      const { vertices, faces } = this.stage.solids;
      const places = Array.from(faces.subarray(first, first + count), (v) => vertices.subarray(9 * v, 9 * v + 3));
      this.boxes.set(first, cornersOf(boxOf(places)));
    }
    return this.boxes.get(first);
  }

  // Sizes of rods, axes and the floor follow lengths that a reader makes much longer or shorter.
  resize(scene) {
    const { stage } = this;
    const places = [...scene.matrices.map(originOf), ...(stage.scene.rods.some((rod) => rod.a < 0) ? [[0, 0, 0]] : [])];
    for (const { a, pa, b, pb } of stage.scene.rods)
      for (const [body, point] of [
        [a, pa],
        [b, pb],
      ])
        if (body >= 0) places.push(transform(scene.matrices[body], point));
    const factor = stretchOf(places, this.size);
    stage.scene.size = factor * this.size;
    stage.scene.cell = this.cell * 10 ** Math.round(Math.log10(factor));
    if (this.floor !== null) stage.scene.floor = factor * this.floor;
    stage.view.unit = factor;
    return factor;
  }

  // Move the camera where the mechanism would leave the picture; returns whether the reader has lost it.
  keep(scene, middle) {
    const { view } = this.stage;
    const points = this.extent(scene).map((p) => sub(p, middle));
    if (!points.length || view.handler) return false;
    const { inside, span } = this.seen(points);
    if (view.isMoved) {
      this.goal = this.swept = null;
      return inside < LOST;
    }
    if (!scene.isPlaying) this.swept = null;
    else this.swept = boxOf([...points, ...(this.swept ? cornersOf(this.swept) : [])]);
    if (inside < 1 || (span < SMALL && !scene.isPlaying)) {
      this.goal = view.fitted(scene.isPlaying ? cornersOf(this.swept) : points, this.aspect);
      if (!scene.isPlaying) this.arrive(1);
    }
    const now = performance.now();
    if (this.goal) this.arrive(1 - Math.exp((this.before - now) / (1000 * EASED)));
    this.before = now;
    return false;
  }

  get aspect() {
    const { canvas } = this.stage;
    return canvas.width / canvas.height;
  }

  // Go a part of the way to the new view.
  arrive(part) {
    const { view } = this.stage;
    const { target, distance } = this.goal;
    view.target = add(view.target, scale(part, sub(target, view.target)));
    view.distance *= (distance / view.distance) ** part;
    if (part === 1 || Math.abs(view.distance / distance - 1) < 1e-3) this.goal = null;
    else this.stage.refresh();
  }

  // The part of the points in the picture, and half of their span there, as part of half the picture.
  seen(points) {
    const m = this.stage.view.matrices(this.aspect).both;
    let inside = 0;
    const places = points.map(([x, y, z]) => {
      const w = m[3] * x + m[7] * y + m[11] * z + m[15];
      const at = [0, 1, 2].map((i) => (m[i] * x + m[4 + i] * y + m[8 + i] * z + m[12 + i]) / w);
      if (w > 0 && Math.max(Math.abs(at[0]), Math.abs(at[1])) <= EDGE) inside += 1;
      return at;
    });
    const { low, high } = boxOf(places);
    return { inside: inside / points.length, span: Math.max(high[0] - low[0], high[1] - low[1]) / 2 };
  }
}

// The factor by which sizes follow the box of places: 1 for one that is near the given size.
export function stretchOf(places, size) {
  const { low, high } = boxOf(places.filter((p) => p.every(Number.isFinite)));
  const ratio = Math.hypot(...sub(high, low)) / size;
  if (!(ratio > 0 && ratio < Infinity)) return 1;
  return ratio > STRETCH ? ratio / STRETCH : Math.min(1, ratio * STRETCH);
}

const boxOf = (points) => ({
  low: [0, 1, 2].map((k) => points.reduce((least, p) => Math.min(least, p[k]), Infinity)),
  high: [0, 1, 2].map((k) => points.reduce((most, p) => Math.max(most, p[k]), -Infinity)),
});

const cornersOf = ({ low, high }) =>
  [0, 1, 2, 3, 4, 5, 6, 7].map((n) => [0, 1, 2].map((k) => ((n >> k) & 1 ? high[k] : low[k])));

// The same picture in other units, seen by `camera`: single precision has no squares of 1e30 m or of 1e-30 m.
export function inUnits(picture, factor, camera) {
  const all = columns([factor, 0, 0], [0, factor, 0], [0, 0, factor], [0, 0, 0]);
  const items = (list) => list.map((item) => ({ ...item, matrix: multiply(all, item.matrix) }));
  const lines = (list) =>
    list.map((line) => ({
      ...line,
      points: line.points.map((x) => factor * x),
      middle: line.middle && scale(factor, line.middle),
      reach: line.reach && factor * line.reach,
    }));
  return {
    ...picture,
    camera,
    items: items(picture.items),
    marks: items(picture.marks),
    lines: lines(picture.lines),
    over: lines(picture.over),
    floor: lines(picture.floor),
    shadow: picture.shadow && picture.shadow.map((x, k) => (k > 11 && k < 15 ? factor * x : x)),
  };
}
