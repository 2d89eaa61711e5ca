// Trails of points of bodies over a motion: points at the samples, computed once, and smooth curves through them.

import { transform } from "./vectors.js";

const PARTS = 4; // pieces of a curve between two samples

export class Trails {
  // matricesAt(motion, index) returns the poses at a sample.
  constructor(tips, matricesAt) {
    this.tips = tips;
    this.matricesAt = matricesAt;
    this.motion = null;
    this.version = 0;
    this.known = 0;
    this.points = [];
    this.curves = [];
    this.cuts = 0; // those of the motion
  }

  // Trails of a motion, bright up to a time.
  of(motion, time) {
    if (!motion || !this.tips.length) return [];
    if (motion !== this.motion || motion.cuts !== this.cuts) {
      const none = () => this.tips.map(() => new Float32Array(3 * 1024));
      this.motion = motion;
      this.cuts = motion.cuts;
      this.known = 0;
      this.points = none();
      this.curves = none();
    }
    const first = Math.max(0, this.known - 2);
    for (let k = this.known; k < motion.count; k++) {
      const matrices = this.matricesAt(motion, k);
      this.tips.forEach(([body, point], i) => {
        this.points[i] = longEnough(this.points[i], 3 * (k + 1));
        this.points[i].set(transform(matrices[body], point), 3 * k);
      });
    }
    const pieces = PARTS * Math.max(0, motion.count - 1) + 1;
    if (motion.count > this.known) {
      this.tips.forEach((_, i) => {
        this.curves[i] = longEnough(this.curves[i], 3 * pieces);
        smooth(this.points[i], motion.count, this.curves[i], first);
      });
    }
    this.known = motion.count;
    const { index, share } = motion.find(time);
    const done = 3 * (PARTS * index + Math.ceil(PARTS * share) + 1);
    return this.curves.map((points) => ({ points: points.subarray(0, 3 * pieces), done: Math.min(done, 3 * pieces) }));
  }
}

function longEnough(values, length) {
  if (length <= values.length) return values;
  const longer = new Float32Array(2 * length);
  longer.set(values);
  return longer;
}

// Curves with the slopes of the neighbors (Catmull-Rom) from sample `first` on.
function smooth(p, count, out, first) {
  if (count) for (let c = 0; c < 3; c++) out[c] = p[c];
  for (let k = first; k + 1 < count; k++) {
    const [a, d] = [Math.max(0, k - 1), Math.min(count - 1, k + 2)];
    for (let j = 1; j <= PARTS; j++) {
      const s = j / PARTS;
      const r = 1 - s;
      for (let c = 0; c < 3; c++) {
        const [x, y] = [p[3 * k + c], p[3 * k + 3 + c]];
        const [u, v] = [(y - p[3 * a + c]) / (k + 1 - a), (p[3 * d + c] - x) / (d - k)];
        out[3 * (PARTS * k + j) + c] = r * r * (1 + 2 * s) * x + s * s * (1 + 2 * r) * y + s * r * (r * u - s * v);
      }
    }
  }
}
