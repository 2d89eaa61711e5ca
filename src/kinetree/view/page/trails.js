// Trails of points of bodies over a motion; computed once per sample.

import { transform } from "./vectors.js";

export class Trails {
  // matricesAt(motion, index) returns the poses at a sample.
  constructor(tips, matricesAt) {
    Object.assign(this, { tips, matricesAt, motion: null, known: 0, points: [] });
  }

  // Trails of a motion, bright up to a time.
  of(motion, time) {
    if (!motion || !this.tips.length) return [];
    if (motion !== this.motion || motion.count < this.known) {
      Object.assign(this, { motion, known: 0, points: this.tips.map(() => new Float32Array(3 * 1024)) });
    }
    for (let k = this.known; k < motion.count; k++) {
      const matrices = this.matricesAt(motion, k);
      this.tips.forEach(([body, point], i) => {
        if (3 * k >= this.points[i].length) {
          const longer = new Float32Array(2 * this.points[i].length);
          longer.set(this.points[i]);
          this.points[i] = longer;
        }
        this.points[i].set(transform(matrices[body], point), 3 * k);
      });
    }
    this.known = motion.count;
    const done = 3 * (motion.find(time).index + 1);
    return this.points.map((points) => ({ points: points.subarray(0, 3 * this.known), done }));
  }
}
