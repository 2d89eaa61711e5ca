// Inverse kinematics in the page: damped least squares within the limits. For the page's own frame, the kernel has the
// whole loop of the library; for others, the same steps run here on poses, twists and loops of the kernel.

import { back, place, product, turnBetween, turnRate } from "./poses.js";

/** @typedef {{ name: string, body: number, pose: ArrayLike<number> }} Frame one of a body, by its pose in it */

// Frames that move: those with names, then bodies.
export function movingFrames(model) {
  const eye = [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1];
  const named = model.frames.filter((f) => f.body >= 0);
  const taken = new Set(named.map((f) => f.name));
  return [
    ...named,
    ...model.bodies.map((b, i) => ({ name: b.name, body: i, pose: eye })).filter((f) => !taken.has(f.name)),
  ];
}

export function framePose(kernel, q, frame) {
  return product(kernel.poses(q).slice(16 * frame.body, 16 * frame.body + 16), frame.pose);
}

// [6, nv] at the origin of a frame, in the axes of the ground, angular part first.
export function frameJacobian(kernel, q, frame) {
  return kernel.jacobian(q, frame.body, place(frame.pose));
}

/**
 * Positions of the frame at the goal: { q, position, rotation, converged, steps }. weights: six, of rotation and
 * position; q0: where the search begins, by default at the present position.
 * @param {import("./app.js").App} app
 * @param {Frame} frame
 * @param {ArrayLike<number>} goal the pose, sixteen numbers
 * @param {{ weights?: number[], q0?: ArrayLike<number> }} [options]
 */
export function solvePose(app, frame, goal, { weights = [1, 1, 1, 1, 1, 1], q0 } = {}) {
  const { kernel } = app;
  const q = Float64Array.from(q0 || app.store.get("q"));
  const own = kernel.has("inverse_kinematics") && frame.name === kernel.frame;
  const found = own ? searchInKernel(app, goal, weights, q) : search(app, frame, goal, weights, q);
  const T = framePose(kernel, found.q, frame);
  const turn = turnBetween(T, goal);
  const shift = back(
    goal,
    [0, 1, 2].map((k) => place(goal)[k] - place(T)[k]),
  );
  const norm = (x, from) => Math.hypot(...x.map((y, k) => (weights[from + k] > 0 ? y : 0)));
  const [rotation, position] = [norm(turn, 0), norm(shift, 3)];
  const converged =
    rotation <= 1e-10 &&
    position <= 1e-10 * app.data.scene.size &&
    kernel.gap(found.q) <= kernel.thresholds.closed * app.data.scene.size;
  return { ...found, rotation, position, converged };
}

function searchInKernel({ kernel, model }, goal, weights, q0) {
  const { lower, upper, free } = ranges(model);
  const found = kernel.call("inverse_kinematics", {
    q0,
    target: goal,
    weights,
    lower,
    upper,
    free,
    tolerance: kernel.thresholds.pose,
    most: kernel.thresholds.poseSteps,
  });
  return { q: found.q.slice(), steps: found.report[2] };
}

// Limits of the velocities' coordinates.
function ranges(model) {
  const lower = new Float64Array(model.nv).fill(-Infinity);
  const upper = new Float64Array(model.nv).fill(Infinity);
  for (const c of model.coordinates) {
    if (c.velocity < 0) continue;
    if (c.lower !== null) lower[c.velocity] = c.lower;
    if (c.upper !== null) upper[c.velocity] = c.upper;
  }
  return { lower, upper, free: new Float64Array(model.nv).fill(1) };
}

function search(app, frame, goal, weights, start) {
  const { kernel, model } = app;
  const limits = ranges(model);
  const { pose: tolerance, poseSteps, poseDamping, poseFine } = kernel.thresholds;
  let q = clipped(model, limits, start);
  let now = errors(app, frame, goal, weights, q);
  let [damping, slow, steps] = [1e-2, 0, 0];
  while (steps < poseSteps && now.worst > poseFine && damping < 1e9 && slow <= 8) {
    const dq = step(model, limits, kernel, q, now, damping * now.size + poseDamping);
    const tried = clipped(model, limits, kernel.integrate(q, dq));
    const then = errors(app, frame, goal, weights, tried);
    const quick = then.size < 0.25 * now.size;
    slow = then.size < 0.9 * now.size ? 0 : slow + 1;
    if (now.worst <= tolerance && !quick) break;
    if (then.size < now.size) {
      if (quick) damping /= 8;
      [q, now] = [tried, then];
    } else damping *= 8;
    steps += 1;
  }
  return { q, steps };
}

function clipped(model, { lower, upper }, q) {
  const out = Float64Array.from(q);
  model.coordinates.forEach(({ velocity: v }, k) => {
    if (v >= 0) out[k] = Math.min(upper[v], Math.max(lower[v], out[k]));
  });
  return out;
}

// Errors F of the pose and of the loops, and A with F - A dq the errors after a small step dq.
function errors({ kernel, model, data }, frame, goal, weights, q) {
  const { nv } = model;
  const length = data.scene.size;
  const T = framePose(kernel, q, frame);
  const turn = turnBetween(T, goal);
  const J = frameJacobian(kernel, q, frame);
  const column = (k, from) => [0, 1, 2].map((i) => J[(from + i) * nv + k]);
  const shift = back(
    goal,
    [0, 1, 2].map((k) => place(goal)[k] - place(T)[k]),
  );
  const F = [...turn, ...shift.map((x) => x / length)].map((x, i) => weights[i] * x);
  const A = F.map(() => new Float64Array(nv));
  for (let k = 0; k < nv; k++) {
    const about = turnRate(turn, back(T, column(k, 0)));
    const along = back(goal, column(k, 3));
    for (let i = 0; i < 3; i++) {
      A[i][k] = weights[i] * about[i];
      A[3 + i][k] = (weights[3 + i] * along[i]) / length;
    }
  }
  if (model.closed) {
    const gap = kernel.call("closure_residual", { q }).slice();
    const G = kernel.call("closure_jacobian", { q }).slice();
    gap.forEach((x, i) => {
      F.push(-x);
      A.push(G.subarray(i * nv, (i + 1) * nv));
    });
  }
  return { F, A, size: 0.5 * F.reduce((s, x) => s + x * x, 0), worst: Math.max(...F.map(Math.abs)) };
}

// The damped step of least norm; joints at a limit that would leave their range do not move.
function step(model, { lower, upper }, kernel, q, { F, A }, damping) {
  const { nv } = model;
  const open = new Float64Array(nv).fill(1);
  for (let k = 0; k < nv; k++) {
    const c = kernel.coordinates[k];
    if (c < 0) continue;
    const slope = F.reduce((s, x, i) => s + A[i][k] * x, 0);
    if ((q[c] >= upper[k] && slope > 0) || (q[c] <= lower[k] && slope < 0)) open[k] = 0;
  }
  const held = A.flatMap((row) => Array.from(row, (x, k) => x * open[k]));
  const { x: dq } = kernel.decompose(held, F.length, nv, { b: F, damping });
  const most = Math.max(1, ...Array.from(dq, Math.abs));
  return dq.map((x) => x / most);
}

/**
 * Distinct solutions from many random starts, nearest to the present position first.
 * @param {import("./app.js").App} app
 * @param {Frame} frame
 * @param {ArrayLike<number>} goal
 * @param {{ weights?: number[], starts?: number, random?: () => number }} [options]
 */
export function allSolutions(app, frame, goal, { weights, starts = 160, random = Math.random } = {}) {
  const { kernel, model, store } = app;
  const here = store.get("q");
  const found = [];
  for (let s = 0; s < starts; s++) {
    const q0 = s === 0 ? here : randomPosition(app, random);
    const made = solvePose(app, frame, goal, { weights, q0 });
    if (!made.converged) continue;
    const q = near(model, made.q, here);
    if (!found.some((x) => apart(model, x.q, q) < kernel.thresholds.sameSolution)) found.push({ ...made, q });
    if (found.length >= 64) break;
  }
  return found.sort((a, b) => apart(model, a.q, here) - apart(model, b.q, here));
}

export function randomPosition({ model, store, data }, random = Math.random) {
  const half = (c) => (c.unit === "rad" ? Math.PI : 0.5 * data.scene.size);
  return Float64Array.from(store.get("q"), (x, k) => {
    const c = model.coordinates[k];
    if (c.unit === "1" || model.joints[c.joint].floats) return x;
    return (c.lower ?? -half(c)) + random() * ((c.upper ?? half(c)) - (c.lower ?? -half(c)));
  });
}

// Angles moved by whole revolutions toward those of another position, within their limits.
function near(model, q, other) {
  return Float64Array.from(q, (x, k) => {
    const c = model.coordinates[k];
    if (!turns(model, c)) return x;
    const moved = x + 2 * Math.PI * Math.round((other[k] - x) / (2 * Math.PI));
    return moved >= (c.lower ?? -Infinity) && moved <= (c.upper ?? Infinity) ? moved : x;
  });
}

// The largest difference of two positions; whole revolutions count as none.
function apart(model, a, b) {
  return Math.max(
    ...Array.from(a, (x, k) => {
      const d = Math.abs(x - b[k]);
      return turns(model, model.coordinates[k]) ? Math.abs(d - 2 * Math.PI * Math.round(d / (2 * Math.PI))) : d;
    }),
  );
}

const turns = (model, c) => c.unit === "rad" && model.joints[c.joint].axial;
