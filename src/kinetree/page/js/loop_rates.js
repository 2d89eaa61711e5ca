// The equations of loops at a position: freedoms, velocities, accelerations, torques of a drive, and loads of all
// joints.
//
// Lengths are divided by the size of the mechanism, so that metres and radians compare.

import { inner } from "./vectors.js";

// { J, svd, rank, mobility, motions, rows, columns } at a position; `held` velocities stay zero. Motions are unit
// vectors of velocities, each divided by its factor in `columns`: a basis of all that the loops allow.
export function freedoms({ model, kernel }, q, held = []) {
  const { nv } = model;
  const { J, A, rows, columns } = kernel.loopRates(q, held);
  const svd = kernel.decompose(A, rows.length, nv, { least: kernel.thresholds.rank });
  const { rank } = svd;
  const motions = svd.right.slice(rank).filter((v) => held.every((k) => Math.abs(v[k]) < 0.5));
  return { J, svd, rank, mobility: nv - held.length - rank, motions, rows, columns };
}

// Velocities that keep the loops closed: those of the `held` ones as given, the others follow.
export function velocitiesOf({ kernel, model }, q, held, given) {
  return kernel.closeVelocities(q, placed(model, held, given), { held });
}

// Accelerations that keep the loops closed at velocities qd: those of the `held` ones as given.
export function accelerationsOf({ kernel, model }, q, qd, held, given) {
  const bias = kernel.call("closure_bias", { q, qd }).slice();
  return kernel.closeVelocities(q, placed(model, held, given), { held, bias });
}

const placed = ({ nv }, held, given) =>
  Float64Array.from({ length: nv }, (_, k) => (held.includes(k) ? given[held.indexOf(k)] : 0));

// Torques of the `driven` velocities that make a motion, and the multipliers of the loops: { tau [nv], multipliers,
// missing }.
export function drivenTorques(app, { q, qd, qdd }, driven) {
  const { nv } = app.model;
  const need = app.kernel.call("driven_torques", { q, qd, qdd }).slice();
  const { J, rows, columns } = app.kernel.loopRates(q);
  // J^T lambda = need in the directions without drives.
  const passive = [...Array(nv).keys()].filter((k) => !driven.includes(k));
  const A = new Float64Array(passive.length * rows.length);
  passive.forEach((k, i) =>
    rows.forEach((row, j) => {
      A[i * rows.length + j] = columns[k] * row * J[j * nv + k];
    }),
  );
  const { x: y } = app.kernel.decompose(A, passive.length, rows.length, {
    b: passive.map((k) => columns[k] * need[k]),
    least: app.kernel.thresholds.rank,
  });
  const multipliers = Float64Array.from(y, (x, j) => x * rows[j]);
  const left = Float64Array.from(
    { length: nv },
    (_, k) => need[k] - rows.reduce((sum, _row, j) => sum + J[j * nv + k] * multipliers[j], 0),
  );
  const tau = left.map((x, k) => (driven.includes(k) ? x : 0));
  return {
    tau,
    multipliers,
    missing: Math.max(0, ...passive.map((k) => Math.abs(left[k]))),
    need: Math.max(...need.map(Math.abs)),
  };
}

// Wrenches [n; f] at all joints, then at all loops, [nb + nl, 6]: of the parent on the child in the axes of the child,
// and of frame a's body on frame b's in the axes of frame b. Loads that the motion leaves open are shared as by springs
// of equal rate.
export function loadsOf(app, state, multipliers) {
  const call = (lambda) => {
    const found = app.kernel.call("loop_loads", { ...state, multipliers: lambda });
    return (found.wrenches ?? found).slice();
  };
  const loads = call(multipliers);
  const open = openMultipliers(app, state.q);
  if (!open.length) return loads;
  const none = call(new Float64Array(multipliers.length));
  const length = meanLength(app, state.q);
  const weight = (k) => (k % 6 < 3 ? 1 / length : 1);
  const columns = open.map((lambda) => call(lambda).map((x, k) => x - none[k]));
  const A = new Float64Array(loads.length * columns.length);
  columns.forEach((column, j) =>
    column.forEach((x, k) => {
      A[k * columns.length + j] = weight(k) * x;
    }),
  );
  const b = loads.map((x, k) => -weight(k) * x);
  const size = app.kernel.decompose(A, loads.length, columns.length).values[0];
  const least = app.kernel.thresholds.rank / app.data.scene.size / size; // the kernel has shared the others
  const { x: share } = app.kernel.decompose(A, loads.length, columns.length, { b, least });
  return loads.map((x, k) => x + columns.reduce((sum, column, j) => sum + share[j] * column[k], 0));
}

// A basis of the multipliers that have no effect on any motion, J^T lambda = 0.
function openMultipliers(app, q) {
  const { kernel, model } = app;
  const { A, rows } = kernel.loopRates(q);
  const transposed = Float64Array.from(A, (_, k) => A[(k % rows.length) * model.nv + Math.floor(k / rows.length)]);
  const { right, rank } = kernel.decompose(transposed, model.nv, rows.length, { least: kernel.thresholds.rank });
  return right.slice(rank).map((v) => v.map((x, j) => x * rows[j]));
}

// The mean distance of joints and loops from their center, by which moments compare with forces.
function meanLength({ kernel, model }, q) {
  const poses = kernel.poses(q).slice();
  const at = (body, [x, y, z]) =>
    body < 0
      ? [x, y, z]
      : [0, 1, 2].map((i) => inner(poses.subarray(16 * body + 4 * i, 16 * body + 4 * i + 4), [x, y, z, 1]));
  const points = [
    ...model.bodies.map((_, i) => at(i, [0, 0, 0])),
    ...model.loops.map((x) => at(x.b, [x.pose_b[3], x.pose_b[7], x.pose_b[11]])),
  ];
  const center = [0, 1, 2].map((k) => points.reduce((sum, p) => sum + p[k], 0) / points.length);
  return Math.sqrt(
    points.reduce((sum, p) => sum + (p[0] - center[0]) ** 2 + (p[1] - center[1]) ** 2 + (p[2] - center[2]) ** 2, 0) /
      points.length,
  );
}
