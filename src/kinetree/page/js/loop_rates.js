// The equations of loops at a position: freedoms, velocities, accelerations, torques of a drive, and loads of all
// joints.
//
// Lengths are divided by the size of the mechanism, so that metres and radians compare.

import { dot, leastSquares, rankOf, singularValues } from "./linear.js";

const ROUNDS = 30;

// Factors of the velocities and of the equations: size for lengths, 1 for angles.
export function unitsOf({ model, data }) {
  const { size } = data.scene;
  return {
    columns: model.velocities.map((v) => (v.unit === "m/s" ? size : 1)),
    rows: model.equations.map((e) => (e.unit === "m" ? 1 / size : 1)),
  };
}

// { J, svd, rank, mobility, motions } at a position; `held` velocities stay zero. Motions are unit vectors of
// velocities in units of `unitsOf`, a basis of all that the loops allow.
export function freedoms(app, q, held = []) {
  const { model, kernel } = app;
  const { nv } = model;
  const { rows, columns } = unitsOf(app);
  const J = kernel.call("closure_jacobian", { q }).slice();
  const scaled = Float64Array.from(
    J,
    (x, k) => x * rows[Math.floor(k / nv)] * (held.includes(k % nv) ? 0 : columns[k % nv]),
  );
  const svd = singularValues(scaled, rows.length, nv);
  const rank = rankOf(svd.values, kernel.thresholds.rank);
  const motions = svd.right.slice(rank).filter((v) => held.every((k) => Math.abs(v[k]) < 0.5));
  return { J, svd, rank, mobility: nv - held.length - rank, motions, rows, columns };
}

// Close the loops to the last digit, with some velocities held: { q, gap, closed }.
export function closeExactly(app, q, held = []) {
  const { kernel, model, data } = app;
  let found = kernel.close(q, { held });
  if (!found.closed) return found;
  for (let round = 0; round < ROUNDS; round++) {
    const { svd, rank, rows, columns } = freedoms(app, found.q, held);
    const residual = kernel.call("closure_residual", { q: found.q });
    const step = leastSquares(
      svd,
      residual.map((x, k) => -x * rows[k]),
      rank,
    ).map((x, k) => (held.includes(k) ? 0 : x * columns[k]));
    const next = kernel.integrate(found.q, step);
    const gap = kernel.gap(next);
    if (!(gap < found.gap)) break;
    found = { q: next, gap, closed: gap <= kernel.thresholds.closed * data.scene.size };
    if (gap < 1e-16 * data.scene.size) break;
  }
  return model.nv ? found : kernel.close(q);
}

// Velocities that keep the loops closed: those of the `held` ones as given, the others follow.
export function velocitiesOf(app, q, held, given) {
  const { nv } = app.model;
  const { J, svd, rank, rows, columns } = freedoms(app, q, held);
  const b = rows.map((row, i) => -row * held.reduce((sum, k, j) => sum + J[i * nv + k] * given[j], 0));
  const x = leastSquares(svd, b, rank);
  return Float64Array.from({ length: nv }, (_, k) => (held.includes(k) ? given[held.indexOf(k)] : x[k] * columns[k]));
}

// Accelerations that keep the loops closed at velocities qd: those of the `held` ones as given.
export function accelerationsOf(app, q, qd, held, given) {
  const { nv } = app.model;
  const { J, svd, rank, rows, columns } = freedoms(app, q, held);
  const bias = app.kernel.call("closure_bias", { q, qd });
  const b = rows.map((row, i) => -row * (bias[i] + held.reduce((sum, k, j) => sum + J[i * nv + k] * given[j], 0)));
  const x = leastSquares(svd, b, rank);
  return Float64Array.from({ length: nv }, (_, k) => (held.includes(k) ? given[held.indexOf(k)] : x[k] * columns[k]));
}

// Torques of the `driven` velocities that make a motion, and the multipliers of the loops: { tau [nv], multipliers,
// missing }.
export function drivenTorques(app, { q, qd, qdd }, driven) {
  const { nv } = app.model;
  const need = app.kernel.call("driven_torques", { q, qd, qdd }).slice();
  const { J, rows, columns } = freedoms(app, q);
  // J^T lambda = need in the directions without drives.
  const passive = [...Array(nv).keys()].filter((k) => !driven.includes(k));
  const A = new Float64Array(passive.length * rows.length);
  passive.forEach((k, i) =>
    rows.forEach((row, j) => {
      A[i * rows.length + j] = columns[k] * row * J[j * nv + k];
    }),
  );
  const svd = singularValues(A, passive.length, rows.length);
  const y = leastSquares(
    svd,
    passive.map((k) => columns[k] * need[k]),
    rankOf(svd.values, app.kernel.thresholds.rank),
  );
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
  const svd = singularValues(A, loads.length, columns.length);
  // the kernel has shared the others
  const effective = svd.values.filter((x) => x > app.kernel.thresholds.rank / app.data.scene.size).length;
  const share = leastSquares(
    svd,
    loads.map((x, k) => -weight(k) * x),
    effective,
  );
  return loads.map((x, k) => x + columns.reduce((sum, column, j) => sum + share[j] * column[k], 0));
}

// A basis of the multipliers that have no effect on any motion, J^T lambda = 0.
function openMultipliers(app, q) {
  const { nv } = app.model;
  const { J, rows, columns } = freedoms(app, q);
  const A = new Float64Array(nv * rows.length);
  for (let k = 0; k < nv; k++)
    rows.forEach((row, j) => {
      A[k * rows.length + j] = columns[k] * row * J[j * nv + k];
    });
  const svd = singularValues(A, nv, rows.length);
  return svd.right.slice(rankOf(svd.values, app.kernel.thresholds.rank)).map((v) => v.map((x, j) => x * rows[j]));
}

// The mean distance of joints and loops from their center, by which moments compare with forces.
function meanLength({ kernel, model }, q) {
  const poses = kernel.poses(q).slice();
  const at = (body, [x, y, z]) =>
    body < 0
      ? [x, y, z]
      : [0, 1, 2].map((i) => dot(poses.subarray(16 * body + 4 * i, 16 * body + 4 * i + 4), [x, y, z, 1]));
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
