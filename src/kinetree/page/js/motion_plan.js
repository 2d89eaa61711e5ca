// The planned motion, which all modes share: positions from, via and to, a law between them, or a file.
//
// The store's field `inverse` has it, with the loads of inverse dynamics: { kind, q0, q1, duration, via: [{ u, q }],
// qd0, qd1, frame }, where u is the part of the duration at which a position is passed.

import { legs, motionOf, spline, tabulated } from "./joint_motions.js";
import { movingFrames } from "./inverse_kinematics.js";
import { alongPath } from "./straight_paths.js";

export const KINDS = ["cycloid", "cubic", "quintic", "trapezoid", "spline", "line", "arc", "file"];
export const CARTESIAN = ["line", "arc"];
export const WITH_RATES = ["cubic", "quintic", "spline"]; // velocities at the ends may be given

export const inLimits = (c, x) => Math.min(c.upper ?? Infinity, Math.max(c.lower ?? -Infinity, x));

// Why a mechanism has no planned motion; "" if it has. `what` begins the sentences.
export function reasonOf({ model }, what) {
  const trees = `${what} is for trees with a drive in every joint.`;
  const instead = "see Simulate, with torques or hold.";
  if (model.loops.length)
    return `${trees} This mechanism has loops: the mode Loops has the torque of its drive and all bearing forces.`;
  if (model.joints.some((joint, i) => joint.floats && model.bodies[i].parent < 0))
    return `${trees} This mechanism floats, and nothing drives its base: ${instead}`;
  if (model.closed) return `${trees} Joints of this mechanism are coupled, by gears or as mimic joints: ${instead}`;
  if (model.nq !== model.nv || model.coordinates.some((c, k) => c.velocity !== k))
    return `${what} is for joints with one coordinate per velocity, unlike those with quaternions: ${instead}`;
  return "";
}

/**
 * The plan of a page: settings(), change(changes, undo, by), frame(), frames, here() and made(), the motion with its
 * samples, or { fault }. The first mode that needs it defines it.
 * @param {import("./app.js").App} app
 */
export function planOf(app) {
  if (app.plan) return app.plan;
  const { store, model } = app;
  const frames = movingFrames(model);
  const here = () => Array.from(store.get("q"));
  const still = () => new Array(model.nv).fill(0);
  const away = (c, x) => inLimits(c, x + (c.unit === "rad" ? Math.PI / 4 : 0.1));
  const first = {
    kind: "cycloid",
    q0: here(),
    q1: here().map((x, k) => away(model.coordinates[k], x)),
    duration: 2,
    via: [],
    qd0: still(),
    qd1: still(),
    gravity: true,
    mass: 0,
    frame: app.kernel.frame,
    joint: 0,
  };
  store.define("inverse", first, { undo: true, link: true });
  store.define("motionFile", null, { undo: true, keep: true }); // the rows of a file (csv_motion.js)
  const given = app.readLink();
  if (given.inverse) store.set({ inverse: { ...first, ...given.inverse } });
  if (given.motionFile) store.set({ motionFile: given.motionFile });
  const settings = () => store.get("inverse");
  const change = (changes, undo = "", by = "") => store.set({ inverse: { ...settings(), ...changes } }, { undo, by });
  const frame = () => frames.find((f) => f.name === settings().frame) || frames[frames.length - 1];
  let known = { key: null, made: null };
  const made = () => {
    const { kind, q0, q1, duration, via, qd0, qd1 } = settings();
    const now = [kind, q0, q1, duration, via, qd0, qd1, store.get("motionFile"), store.get("parameters"), frame()];
    if (!known.key?.every((x, k) => x === now[k])) known = { key: now, made: computed(app, settings(), frame()) };
    return known.made;
  };
  app.plan = { settings, change, frame, frames, here, made };
  return app.plan;
}

// { motion, samples }, or { fault }: why there is none.
function computed(app, plan, frame) {
  try {
    const samples = samplesOf(app, plan, frame);
    return { samples, motion: motionOf(app.model, samples) };
  } catch (error) {
    return { fault: error.message };
  }
}

// The times [s] and positions of a plan, from the first to the last.
export function stationsOf({ q0, q1, duration, via }) {
  return { times: [0, ...via.map(({ u }) => u * duration), duration], points: [q0, ...via.map(({ q }) => q), q1] };
}

function samplesOf(app, plan, frame) {
  const { kind, duration, via, qd0, qd1 } = plan;
  const file = app.store.get("motionFile");
  if (kind === "file" && !file) throw new Error("Choose a CSV file with columns t and the joints.");
  if (kind === "file") return tabulated(file);
  const { times, points } = stationsOf(plan);
  if (kind === "spline") return spline(times, points, undefined, [qd0, qd1]);
  if (CARTESIAN.includes(kind)) return alongPath(app, frame, kind, points, duration);
  const isMoving = [...qd0, ...qd1].some((x) => x !== 0);
  if (!isMoving || !WITH_RATES.includes(kind)) return legs(kind, times, points);
  const rates = [qd0, ...via.map(() => qd0.map(() => 0)), qd1];
  const rests = points.map((q) => q.map(() => 0));
  return tabulated({ t: times, q: points, qd: rates, qdd: kind === "quintic" ? rests : null });
}

// The shortest duration [s] with which no joint exceeds its limit of velocity; null without such limits.
export function shortestDuration({ model }, { samples }, duration) {
  const shares = model.velocities.flatMap((v, k) => {
    const most = model.joints[v.joint].velocity[k - model.joints[v.joint].v[0]];
    return most > 0 ? [Math.max(...samples.map((s) => Math.abs(s.qd[k]))) / most] : [];
  });
  return shares.length ? Math.max(1e-3, duration * Math.max(...shares)) : null;
}

// The state of a made plan at a time, with accelerations on straight lines between its samples.
export function plannedAt({ motion, samples }, time) {
  const { index, share } = motion.find(time);
  const next = samples[Math.min(index + 1, samples.length - 1)];
  return { ...motion.state(time), qdd: samples[index].qdd.map((x, k) => x + share * (next.qdd[k] - x)) };
}
