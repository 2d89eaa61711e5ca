// The range of a driving joint of a closed mechanism, found by following its motion: it turns, rocks, or is locked.

import { freedoms } from "./loop_rates.js";
import { inner } from "./vectors.js";

const STRIDE = 0.03; // [rad, sizes of the mechanism] between points of a range, at most
const SHORTEST = 1e-4; // of STRIDE: a shorter step means that branches meet
const BEND = 0.97; // the least cosine between directions of motion of neighbors
const MOST = 6000; // points of a range
const GOOD = 0.05; // the share of a joint in a motion from which it may lead

// Velocities that may drive: those of joints with one axis.
export function drivesOf({ model, kernel }) {
  return [...model.velocities.keys()].filter(
    (k) => kernel.coordinates[k] >= 0 && model.joints[model.velocities[k].joint].axial,
  );
}

// As many independent velocities as the mechanism has freedoms: the preferred ones first, then joints of the ground.
export function leadsOf(app, q, preferred = []) {
  const { model } = app;
  const able = drivesOf(app);
  const onGround = (k) => model.bodies[model.velocities[k].joint].parent < 0;
  const order = [
    ...new Set([
      ...preferred,
      ...able.filter(onGround),
      ...able.filter((k) => !onGround(k)),
      ...model.velocities.keys(),
    ]),
  ];
  let rest = freedoms(app, q).motions;
  const leads = [];
  for (const least of [GOOD, 1e-9]) {
    for (const k of order) {
      if (!rest.length || leads.includes(k) || !(Math.max(...rest.map((v) => Math.abs(v[k]))) > least)) continue;
      leads.push(k);
      const pivot = rest.reduce((best, v) => (Math.abs(v[k]) > Math.abs(best[k]) ? v : best));
      rest = rest.filter((v) => v !== pivot).map((v) => v.map((x, i) => x - (v[k] / pivot[k]) * pivot[i]));
    }
  }
  return leads;
}

export const positionOf = ({ kernel }, q, velocity) => q[kernel.coordinates[velocity]];

// { kind: "turns" | "rocks" | "locked", low, high, branch: [q], curve: [q], closed, revolutions } of a drive from a
// closed position, while the `held` velocities stay. `curve` is the whole motion, and `branch` its part between the
// dead positions of
// the drive around the start, at angles from low to high. A generator: it yields after every point.
export function* rangeOf(app, q0, drive, held) {
  const here = positionOf(app, q0, drive);
  const forth = yield* follow(app, q0, drive, held, 1);
  if (!forth)
    return { kind: "locked", low: here, high: here, branch: [q0], curve: [q0], closed: false, revolutions: 0 };
  const back = forth.returned ? null : yield* follow(app, q0, drive, held, -1);
  const curve = [...(back ? back.points.slice(1).reverse() : []), ...forth.points];
  const advance = positionOf(app, forth.points[forth.points.length - 1], drive) - here;
  const revolute = app.model.velocities[drive].unit === "rad/s";
  const turns = revolute && forth.returned && !forth.dead.length && Math.abs(advance) > 2 * Math.PI * 0.9;
  if (turns) {
    const revolutions = Math.round(Math.abs(advance) / (2 * Math.PI));
    return {
      kind: "turns",
      low: here,
      high: here + 2 * Math.PI * revolutions,
      branch: forth.points,
      curve,
      closed: true,
      revolutions,
    };
  }
  const behind = back || (yield* follow(app, q0, drive, held, -1, true));
  const [up, down] = [upTo(forth), upTo(behind)];
  const branch = [...down.slice(1).reverse(), ...up];
  const ends = [branch[0], branch[branch.length - 1]].map((q) => positionOf(app, q, drive));
  const rising = ends[1] >= ends[0];
  return {
    kind: "rocks",
    low: Math.min(...ends),
    high: Math.max(...ends),
    branch: rising ? branch : branch.reverse(),
    curve,
    closed: forth.returned,
    revolutions: 0,
  };
}

// The points up to the first dead position of the drive.
function upTo({ points, dead }) {
  return dead.length ? [...points.slice(0, dead[0].after + 1), dead[0].q] : points;
}

// Points along the motion until it returns to its start, ends, or (if so asked) the drive is at a dead position:
// { points, returned, dead: [{ q, after: index of the point before }] }; null without any motion.
function* follow(app, q0, drive, held, sign, untilDead = false) {
  const { kernel, data } = app;
  const first = freedoms(app, q0, held);
  if (!first.motions.length) return null;
  const start = nearest(first.motions, unitVector(first.motions[0].length, drive)).map((x) => sign * x);
  const home = kernel.poses(q0).slice();
  const out = { points: [Float64Array.from(q0)], returned: false, dead: [] };
  let [q, way, stride, far] = [out.points[0], start, STRIDE, 0];
  while (out.points.length < MOST) {
    yield;
    const next = stepped(app, q, way, stride, held);
    if (!next || inner(next.way, way) < BEND) {
      stride /= 2;
      if (stride < SHORTEST * STRIDE) break;
      continue;
    }
    if (next.way[drive] * way[drive] < 0) {
      out.dead.push({ q: turningPoint(app, q, way, stride, held, drive), after: out.points.length - 1 });
      if (untilDead) break;
    }
    ({ q, way } = next);
    const distance = apart(kernel.poses(q), home, data.scene.size);
    far = Math.max(far, distance);
    out.points.push(q);
    out.returned = far > 3 * STRIDE && distance < 0.75 * STRIDE && inner(way, start) > 0;
    if (out.returned) break;
    stride = Math.min(STRIDE, 1.5 * stride);
  }
  return out;
}

// The closed position a stride further, and the direction of motion there.
function stepped(app, q, way, stride, held) {
  const { columns } = app.kernel.units;
  const made = app.kernel.close(
    app.kernel.integrate(
      q,
      way.map((x, k) => stride * x * columns[k]),
    ),
    { held },
  );
  if (!made.closed) return null;
  const { motions } = freedoms(app, made.q, held);
  return motions.length ? { q: made.q, way: nearest(motions, way) } : null;
}

// The position within a stride at which the drive stands still.
function turningPoint(app, q, way, stride, held, drive) {
  let [low, high, found] = [0, stride, q];
  for (let round = 0; round < 40; round++) {
    const middle = (low + high) / 2;
    const next = stepped(app, q, way, middle, held);
    if (!next) break;
    found = next.q;
    if (next.way[drive] * way[drive] > 0) low = middle;
    else high = middle;
  }
  return found;
}

const unitVector = (n, k) => Float64Array.from({ length: n }, (_, i) => (i === k ? 1 : 0));

// The unit motion nearest to a direction; the first one where all are perpendicular to it.
function nearest(motions, way) {
  const out = new Float64Array(way.length);
  for (const v of motions) {
    const along = inner(v, way);
    for (let k = 0; k < out.length; k++) out[k] += along * v[k];
  }
  const size = Math.sqrt(inner(out, out));
  return size > 1e-9 ? out.map((x) => x / size) : motions[0];
}

// The largest difference of two sets of poses: of rotations, and of positions in sizes of the mechanism.
function apart(a, b, size) {
  let most = 0;
  for (let k = 0; k < a.length; k++) most = Math.max(most, Math.abs(a[k] - b[k]) / (k % 4 === 3 ? size : 1));
  return most;
}
