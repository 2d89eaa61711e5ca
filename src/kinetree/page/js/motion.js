// Motions: states over time, which the player shows. A motion has t, q and qd by samples; `extend`, where it exists,
// computes it further. Between samples, coordinates of joints with one axis lie on cubics with the velocities as
// slopes, the others on straight lines, quaternions normalized.

import { poseBetween } from "./vectors.js";

export class Motion {
  constructor(model, { name = "", capacity = 1024 } = {}) {
    this.model = model;
    this.name = name;
    this.count = 0;
    this.t = new Float64Array(capacity);
    this.q = new Float64Array(capacity * model.nq);
    this.qd = new Float64Array(capacity * model.nv);
    this.columns = []; // [{ name, labels, units, values: one array per label }] besides q and qd
    this.quaternions = quaternionsOf(model);
    this.cuts = 0; // how often samples were forgotten
    this.once = false; // whether it stays at its end, and does not begin again
    /** @type {?ArrayLike<number>[]} of every sample, of a motion that is planned */
    this.accelerations = null;
    /** @type {?Float32Array} [count, nb, 7] of a recorded motion */
    this.poses = null;
  }

  static recorded(model, run) {
    const out = new Motion(model, { name: "recorded run", capacity: 1 });
    Object.assign(out, {
      count: run.t.length,
      t: run.t,
      q: run.q,
      qd: run.qd,
      poses: run.poses || null,
      recorded: true,
    });
    const n = run.t.length;
    out.columns = run.columns
      .filter((c) => c.name !== "q" && c.name !== "qd")
      .map((c) => ({ ...c, values: c.labels.map((_, k) => c.values.subarray(k * n, (k + 1) * n)) }));
    return out;
  }

  get start() {
    return this.count ? this.t[0] : 0;
  }
  get end() {
    return this.count ? this.t[this.count - 1] : 0;
  }

  push(t, q, qd) {
    if (this.count === this.t.length) {
      for (const name of ["t", "q", "qd"]) {
        const longer = new Float64Array(2 * this[name].length);
        longer.set(this[name]);
        this[name] = longer;
      }
    }
    this.t[this.count] = t;
    this.q.set(q, this.count * this.model.nq);
    this.qd.set(qd, this.count * this.model.nv);
    this.count += 1;
  }

  // The accelerations of a sample, where they are known exactly.
  /** @returns {?ArrayLike<number>} */
  accelerationAt(k) {
    return this.accelerations?.[k] ?? null;
  }

  // Forget what comes after a time; the sample at or before it stays.
  cut(t) {
    const { index } = this.find(t);
    if (index + 1 >= this.count) return;
    this.count = index + 1;
    this.cuts += 1;
  }

  // The sample at or before a time, and the part of the way to the next one.
  find(t) {
    let [low, high] = [0, Math.max(0, this.count - 1)];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.t[middle] <= t + 1e-12) low = middle;
      else high = middle - 1;
    }
    const span = low + 1 < this.count ? this.t[low + 1] - this.t[low] : 0;
    return { index: low, share: span > 0 ? Math.min(1, Math.max(0, (t - this.t[low]) / span)) : 0 };
  }

  state(t) {
    const { nq, nv } = this.model;
    const { index, share } = this.find(t);
    const [q, qd] = [mixed(this.q, nq, index, share), mixed(this.qd, nv, index, share)];
    if (share) this.curve(q, qd, index, share);
    for (const k of share ? this.quaternions : []) {
      const n = Math.hypot(q[k], q[k + 1], q[k + 2], q[k + 3]) || 1;
      for (let j = k; j < k + 4; j++) q[j] /= n;
    }
    return { q, qd };
  }

  // Put coordinates of joints with one axis on the cubic between two samples.
  curve(q, qd, index, share) {
    const { nq, nv, coordinates, joints } = this.model;
    const h = this.t[index + 1] - this.t[index];
    const [s, r] = [share, 1 - share];
    coordinates.forEach(({ velocity, joint }, k) => {
      if (velocity < 0 || !joints[joint].axial) return;
      const [a, b] = [this.q[index * nq + k], this.q[(index + 1) * nq + k]];
      const [u, v] = [this.qd[index * nv + velocity], this.qd[(index + 1) * nv + velocity]];
      q[k] = r * r * (1 + 2 * s) * a + s * s * (1 + 2 * r) * b + h * s * r * (r * u - s * v);
      qd[velocity] = (6 * s * r * (b - a)) / h + r * (r - 2 * s) * u + s * (s - 2 * r) * v;
    });
  }

  // Matrices of all bodies at a time, of a motion that has poses.
  matrices(t) {
    const { index, share } = this.find(t);
    const next = Math.min(index + 1, this.count - 1);
    const row = 7 * this.model.bodies.length;
    return this.model.bodies.map((_, i) => poseBetween(this.poses, index * row + 7 * i, next * row + 7 * i, share));
  }
}

function mixed(values, size, index, share) {
  const out = values.slice(index * size, (index + 1) * size);
  if (share) for (let k = 0; k < size; k++) out[k] += share * (values[(index + 1) * size + k] - out[k]);
  return out;
}

function quaternionsOf(model) {
  return model.coordinates.flatMap((c, k) =>
    c.unit === "1" && (k === 0 || model.coordinates[k - 1].unit !== "1" || model.coordinates[k - 1].joint !== c.joint)
      ? [k]
      : [],
  );
}
