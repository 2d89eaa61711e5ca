// Measures of a Jacobian: how freely a frame moves, and its ellipsoid of velocities.

import { frameJacobian, randomPosition } from "./inverse_kinematics.js";
import { seeded } from "./random_numbers.js";
import { columns, scale } from "./vectors.js";

const NEAR = 0.02; // a smallest singular value below this part of the largest one counts as near singular
const RANK = 1e-6; // singular values below this part of the largest one are zero
const LARGE = 0.22; // of the size of the mechanism: the largest semiaxis of the ellipsoid

// The product of the singular values of the translation alone.
export function translationMeasure(app, frame, J) {
  const { values } = decomposed(app, J, 3);
  return values.slice(0, ranks(app, frame).translation).reduce((p, x) => p * x, 1);
}

// { measure, condition, singular, ellipsoid(at) } of J [6, nv]: the product of the singular values of the translation,
// as many as the frame has at other positions, in units of the size of the mechanism; the ratio of largest and smallest
// of all six rows.
export function manipulability(app, frame, J) {
  const size = app.data.scene.size;
  const expected = ranks(app, frame);
  const all = decomposed(app, J, 0).values;
  const { values: along, right: vectors } = decomposed(app, J, 3);
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

// Whether a frame can move in all of its directions and keep its rotation: not that of a two-link arm, say.
export function keepsRotation(app, frame) {
  const { whole, translation, rotation } = ranks(app, frame);
  return !app.model.closed && whole === translation + rotation;
}

// Whether a frame can stay while the joints move, at positions that are not singular.
export function isRedundant(app, frame, isPose) {
  const { whole, translation } = ranks(app, frame);
  return !app.model.closed && chainJoints(app.model, frame.body) > (isPose ? whole : translation);
}

const chainJoints = (model, body) =>
  body < 0 ? 0 : model.joints[body].v[1] - model.joints[body].v[0] + chainJoints(model, model.bodies[body].parent);

// Singular values of the rows of J [6, nv] from `first` on, with translations relative to the size of the mechanism;
// `right` are directions of the rows.
function decomposed({ kernel, model, data }, J, first) {
  const { nv } = model;
  const m = 6 - first;
  const rows = (_, k) => J[(first + (k % m)) * nv + Math.floor(k / m)] / (first + (k % m) < 3 ? 1 : data.scene.size);
  return kernel.decompose(Float64Array.from({ length: nv * m }, rows), nv, m, { least: RANK });
}

const known = new WeakMap(); // by app, then by name of the frame

// The ranks of the Jacobian at positions that are not singular, found at a few random ones.
function ranks(app, frame) {
  const table = known.get(app) || known.set(app, new Map()).get(app);
  if (!table.has(frame.name)) {
    const { kernel, model } = app;
    const found = { whole: 0, translation: 0, rotation: 0 };
    const random = seeded(7);
    for (let k = 0; k < 4; k++) {
      const J = frameJacobian(kernel, randomPosition(app, random), frame);
      found.whole = Math.max(found.whole, decomposed(app, J, 0).rank);
      found.translation = Math.max(found.translation, decomposed(app, J, 3).rank);
      found.rotation = Math.max(
        found.rotation,
        decomposed(
          app,
          J.map((x, i) => (i < 3 * model.nv ? x : 0)),
          0,
        ).rank,
      );
    }
    table.set(frame.name, found);
  }
  return table.get(frame.name);
}
