// Trails of points of bodies over a motion: a tail that fades with age, and the whole path of a motion that ends. Both
// have few points however long the motion is, so that a picture takes no longer after minutes than at the start.

import { transform } from "./vectors.js";

export const TAIL = 240; // samples: 4 s of a motion that is computed in the page
const MOST = 2400; // points of all tails together, and of all paths
const PARTS = 4; // pieces of a curve between two samples, where there are few

export class Trails {
  // matricesAt(motion, index) returns the poses at a sample; tips: [body, point] each.
  constructor(tips, matricesAt) {
    this.tips = tips;
    this.matricesAt = matricesAt;
    this.forget(null);
  }

  forget(motion) {
    this.motion = motion;
    this.cuts = motion?.cuts;
    this.held = new Int32Array(TAIL + 2).fill(-1); // the samples whose points are known, in a ring
    this.ring = new Float32Array(3 * this.tips.length * this.held.length);
    this.paths = null;
    this.pathOf = -1; // the number of samples of the motion whose path is known
  }

  // Lines of a motion up to a time: { points, strip, fades, soft }, of which `soft` ones are the paths.
  of(motion, time) {
    if (!motion?.count || !this.tips.length) return [];
    if (motion !== this.motion || motion.cuts !== this.cuts) this.forget(motion);
    return [...(motion.extend ? [] : this.wholePaths(motion)), ...this.tails(motion, time)];
  }

  // The points of all tips at a sample, computed once while it is near the present one.
  at(motion, sample) {
    const [slot, size] = [sample % this.held.length, 3 * this.tips.length];
    const own = this.ring.subarray(slot * size, (slot + 1) * size);
    if (this.held[slot] !== sample) {
      this.held[slot] = sample;
      own.set(this.pointsAt(motion, sample));
    }
    return own;
  }

  pointsAt(motion, sample) {
    const matrices = this.matricesAt(motion, sample);
    return this.tips.flatMap(([body, point]) => transform(matrices[body], point));
  }

  tails(motion, time) {
    const { index, share } = motion.find(time);
    const first = Math.max(0, index - TAIL + 2);
    const last = Math.min(motion.count - 1, index + 1);
    const samples = Array.from({ length: last - first + 1 }, (_, k) => this.at(motion, first + k));
    const parts = Math.min(PARTS, Math.max(1, Math.floor(MOST / (this.tips.length * samples.length))));
    const pieces = Math.ceil((index - first + share) * parts);
    return this.tips.map((_, tip) => ({
      points: curve(samples, 3 * tip, parts).subarray(0, 3 * (pieces + 1)),
      strip: true,
      fades: true,
    }));
  }

  wholePaths(motion) {
    if (this.pathOf !== motion.count) {
      const most = Math.max(2, Math.floor(MOST / this.tips.length));
      const count = Math.min(motion.count, most);
      const sample = (k) => Math.round((k * (motion.count - 1)) / Math.max(1, count - 1));
      const samples = Array.from({ length: count }, (_, k) => this.pointsAt(motion, sample(k)));
      const parts = Math.min(PARTS, Math.max(1, Math.floor(most / count)));
      this.pathOf = motion.count;
      this.paths = this.tips.map((_, tip) => ({ points: curve(samples, 3 * tip, parts), strip: true, soft: true }));
    }
    return this.paths;
  }
}

// The curve through points `p[k][at...at+2]` with the slopes of the neighbors (Catmull-Rom), in pieces between samples.
export function curve(p, at, parts) {
  const count = p.length;
  const out = new Float32Array(3 * (parts * (count - 1) + 1));
  out.set(p[0].slice(at, at + 3));
  for (let k = 0; k + 1 < count; k++) {
    const [a, d] = [Math.max(0, k - 1), Math.min(count - 1, k + 2)];
    for (let j = 1; j <= parts; j++) {
      const s = j / parts;
      const r = 1 - s;
      for (let c = 0; c < 3; c++) {
        const [x, y] = [p[k][at + c], p[k + 1][at + c]];
        const [u, v] = [(y - p[a][at + c]) / (k + 1 - a), (p[d][at + c] - x) / (d - k)];
        out[3 * (parts * k + j) + c] = r * r * (1 + 2 * s) * x + s * s * (1 + 2 * r) * y + s * r * (r * u - s * v);
      }
    }
  }
  return out;
}
