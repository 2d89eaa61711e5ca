// Measures of a Jacobian: how freely a frame moves, and its ellipsoid of velocities.

import { frameJacobian, randomPosition } from "./inverse_kinematics.js";
import { eigen } from "./poses.js";
import { columns, scale } from "./vectors.js";

const NEAR = 0.02; // a smallest singular value below this part of the largest one counts as near singular
const RANK = 1e-12; // eigenvalues of J J^T below this part of the largest one are zero
const LARGE = 0.22; // of the size of the mechanism: the largest semiaxis of the ellipsoid

// The product of the singular values of the translation alone.
export function translationMeasure(app, frame, J) {
  const values = singular(gram(J, app.model.nv, 3, 3, app.data.scene.size), 3);
  return values.slice(0, ranks(app, frame).translation).reduce((p, x) => p * x, 1);
}

// { measure, condition, singular, ellipsoid(at) } of J [6, nv]: the product of the singular values of the translation, as many
// as the frame has at other positions, in units of the size of the mechanism; the ratio of largest and smallest of all six rows.
export function manipulability(app, frame, J) {
  const { nv } = app.model;
  const size = app.data.scene.size;
  const expected = ranks(app, frame);
  const all = singular(gram(J, nv, 0, 6, size), 6);
  const { values, vectors } = eigen(gram(J, nv, 3, 3, size), 3);
  const along = values.map((x) => Math.sqrt(Math.max(0, x)));
  const least = all[expected.whole - 1] ?? 0;
  return {
    measure: along.slice(0, expected.translation).reduce((p, x) => p * x, 1),
    condition: least > 0 ? all[0] / least : Infinity,
    singular: least < NEAR * all[0] || (along[expected.translation - 1] ?? 0) < NEAR * along[0],
    ellipsoid(at) {
      const k = (LARGE * size) / (along[0] || 1);
      const [x, y, z] = vectors.map((v, i) => scale(Math.max(k * along[i], 0.004 * size), v));
      return { solid: "ball", matrix: columns(x, y, z, at), color: app.stage.palette.accent.slice(0, 3), alpha: 0.3 };
    },
  };
}

// J J^T of some rows, with translations in parts of the size of the mechanism.
function gram(J, nv, first, count, size) {
  const out = new Float64Array(count * count);
  const unit = (i) => (first + i < 3 ? 1 : 1 / size);
  for (let i = 0; i < count; i++) {
    for (let j = 0; j < count; j++) {
      for (let k = 0; k < nv; k++) out[i * count + j] += unit(i) * unit(j) * J[(first + i) * nv + k] * J[(first + j) * nv + k];
    }
  }
  return out;
}

const singular = (G, n) => eigen(G, n).values.map((x) => Math.sqrt(Math.max(0, x)));

const known = new WeakMap(); // by app, then by name of the frame

// The ranks of the Jacobian at positions that are not singular, found at a few random ones.
function ranks(app, frame) {
  const table = known.get(app) || known.set(app, new Map()).get(app);
  if (!table.has(frame.name)) {
    const { kernel, model } = app;
    const found = { whole: 0, translation: 0 };
    const count = (G, n) => { const { values } = eigen(G, n); return values.filter((x) => x > RANK * values[0]).length; };
    let seed = 7;
    const random = () => (seed = (seed * 16807) % 2147483647) / 2147483647;
    for (let k = 0; k < 4; k++) {
      const J = frameJacobian(kernel, randomPosition(app, random), frame);
      found.whole = Math.max(found.whole, count(gram(J, model.nv, 0, 6, app.data.scene.size), 6));
      found.translation = Math.max(found.translation, count(gram(J, model.nv, 3, 3, app.data.scene.size), 3));
    }
    table.set(frame.name, found);
  }
  return table.get(frame.name);
}

