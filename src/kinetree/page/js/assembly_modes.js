// Assembly modes: the positions in which loops close while the leading joints stay, from many random starts.

import { seeded } from "./random_numbers.js";

const TRIES = 96;
const MOST = 40;

// [q], the present one first. A generator: it yields after every try.
export function* assemblyModes(app, q0, leads) {
  const { kernel, model, data } = app;
  const random = seeded(5);
  const found = [];
  for (let k = 0; k < TRIES && found.length < MOST; k++) {
    const away = Float64Array.from(model.velocities, (v, i) =>
      !k || leads.includes(i) ? 0 : (2 * random() - 1) * (v.unit === "rad/s" ? Math.PI : 0.7 * data.scene.size),
    );
    const made = kernel.close(kernel.integrate(q0, away), { held: leads });
    if (made.closed) {
      const poses = kernel.poses(made.q).slice();
      if (!found.some((one) => same(one.poses, poses, data.scene.size, kernel.thresholds.samePose)))
        found.push({ q: made.q, poses });
    }
    yield;
  }
  return found.map((one) => one.q);
}

// Whether poses are those of one mode: entries of rotations, and places in sizes of the mechanism.
const same = (a, b, size, least) => a.every((x, k) => Math.abs(x - b[k]) < least * (k % 4 === 3 ? size : 1));
