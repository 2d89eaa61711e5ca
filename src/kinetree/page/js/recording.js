// A motion that is computed while it is shown: steps of the kernel under drives and a spring of the pointer, recorded
// at every frame. Energies and torques of the drives follow from the states.

import { Motion } from "./motion.js";
import { add, cross, fromRows, scale, sub, transform, turned, within } from "./vectors.js";

export const FRAME = 1 / 60; // [s] between samples
const FRAMES = 4; // between two readings of the clock
const AHEAD = 12; // [ms] of computation within a frame of the screen, so that the page stays responsive

// Runge-Kutta steps between two samples, of at most this length [s].
export const stepsPerFrame = (step) => Math.max(1, Math.ceil(FRAME / step - 1e-9));

export class Recording extends Motion {
  // drives(): { torque, stiffness, damping, target, at } now, as of kernel.advance; step: [s] of a time step;
  // friction(): that of the ground, or null without one
  constructor(app, { q, qd, drives, step, friction = () => null, name = "motion" }) {
    super(app.model, { name });
    const { kernel } = app;
    this.app = app;
    this.kernel = kernel;
    this.drives = drives;
    this.step = step;
    this.pull = null;
    this.ended = "";
    this.touched = false;
    this.friction = friction;
    this.state_ = kernel.begin(q, kernel.closeVelocities(q, qd), 0, friction());
    this.wrenches = new Float64Array(6 * app.model.bodies.length);
    this.known = []; // arrays of the columns
    this.acted = []; // [first sample, drives]: those that acted from a sample on
    this.pulled = []; // of every sample, whether the pointer pulled
    const { velocities } = app.model;
    // The momentum of a mechanism that floats changes only if it is moved from outside.
    const floats =
      kernel.has("momentum") && app.model.joints.some((joint, i) => joint.floats && app.model.bodies[i].parent < 0);
    const energies = ["kinetic", "potential", ...(kernel.has("spring_energy") ? ["springs"] : []), "total"];
    this.columns = [
      this.column(
        "energy",
        energies,
        energies.map(() => "J"),
        ({ q, qd }) => Object.values(kernel.energies(q, qd)),
      ),
      this.column(
        "drive torque",
        velocities.map((v) => v.label),
        velocities.map((v) => v.effort),
        ({ q, qd, live, t }) => driveTorques(kernel, live, q, qd, t),
      ),
      ...(floats
        ? [
            this.column(
              "momentum",
              ["lx", "ly", "lz", "px", "py", "pz"],
              [...Array(3).fill("N m s"), ...Array(3).fill("N s")],
              ({ q, qd }) => kernel.call("momentum", { q, qd }),
            ),
          ]
        : []),
    ];
    this.felt = (kernel.ground?.names ?? []).flatMap(() => [[], [], []]); // forces: along the normal and two tangents
    this.known.push(this.felt);
    if (kernel.isCarried)
      this.columns.push({
        name: "contact force",
        labels: kernel.ground.names,
        units: kernel.ground.names.map(() => "N"),
        values: this.felt.filter((_, k) => k % 3 === 0), // along the normals
      });
    this.record();
  }

  // Numbers that follow from the states are computed when they are read: the motion itself does not wait for them.
  column(name, labels, units, compute) {
    const own = labels.map(() => []);
    this.known.push(own);
    const filled = () => {
      const { nq, nv } = this.model;
      for (let k = own[0].length; k < this.count; k++) {
        const [q, qd] = [this.q.subarray(k * nq, (k + 1) * nq), this.qd.subarray(k * nv, (k + 1) * nv)];
        const found = compute({ q, qd, t: this.t[k], live: this.acted.findLast(([first]) => first <= k)[1] });
        own.forEach((x, i) => x.push(found[i]));
      }
      return own;
    };
    return {
      name,
      labels,
      units,
      get values() {
        return filled();
      },
    };
  }

  // Compute all columns now: before parameters change, with which they would be other numbers.
  settle() {
    for (const column of this.columns) void column.values;
  }

  cut(t) {
    super.cut(t);
    for (const own of this.known) for (const x of own) x.length = Math.min(x.length, this.count);
  }

  record() {
    const { state_: state } = this;
    const live = this.drives();
    if (this.acted[this.acted.length - 1]?.[1] !== live) this.acted.push([this.count, live]);
    this.push(state.t, state.q, state.qd);
    const length = FRAME / stepsPerFrame(this.step); // of a time step
    this.felt.forEach((own, k) => own.push(state.impulses && this.count > 1 ? state.impulses[k] / length : 0));
    this.pulled[this.count - 1] = Boolean(this.pull);
  }

  // The accelerations of a sample by forward dynamics; null where other forces act than drives and weights.
  accelerationAt(k) {
    const { kernel, model } = this;
    if (!kernel.has("forward_dynamics") || model.closed || model.passive || this.pulled[k]) return null;
    if (this.felt.some((force) => force[k])) return null; // the ground acts
    const q = this.q.slice(k * model.nq, (k + 1) * model.nq);
    const qd = this.qd.slice(k * model.nv, (k + 1) * model.nv);
    const tau = driveTorques(kernel, this.acted.findLast(([first]) => first <= k)[1], q, qd, this.t[k]);
    return kernel.call("forward_dynamics", { q, qd, tau }).slice();
  }

  // Compute on to a time, within the time that a frame leaves; returns how far the motion is known.
  extend(until, { patience = AHEAD } = {}) {
    const began = performance.now();
    let good = true;
    while (good && this.end < until - 1e-9 && performance.now() - began < patience) {
      for (let k = 0; k < FRAMES && good && this.end < until - 1e-9; k++) {
        good = this.frame();
        if (good) this.record();
      }
    }
    return this.end;
  }

  // One frame of steps; false where the numbers leave the finite range.
  frame() {
    const { state_: state, kernel } = this;
    const count = stepsPerFrame(this.step);
    const goal = (this.count ? this.t[this.count - 1] : 0) + FRAME;
    const live = this.pull ? { ...this.drives() } : this.drives();
    let good = true;
    if (this.pull) {
      for (let k = 0; k < count && good; k++) {
        this.setWrench(live);
        good = kernel.advance(state, FRAME / count, 1, live);
      }
    } else good = kernel.advance(state, FRAME / count, count, live);
    state.t = goal;
    if (!good) {
      this.ended =
        this.count > 1
          ? "The numbers left the finite range. Take a shorter step or softer drives."
          : "No step is possible from here: every joint needs inertia to move, and drives that suit the time step.";
      this.extend = undefined;
    }
    return good;
  }

  // Go on from an earlier sample: what came after it is forgotten.
  resume(t) {
    this.cut(t + 1e-9);
    if (this.count > 1) this.touched = true; // what follows differs from a motion with these inputs from the start
    this.acted = this.acted.filter(([first]) => first < this.count);
    const { q, qd } = this.state(this.end);
    Object.assign(this.state_, this.kernel.begin(q, qd, this.end, this.friction()));
    if (this.extend === undefined) delete this.extend; // the method of the class again
    this.ended = "";
  }

  // The wrench of a spring and a damper from a point of a body to the place of the pointer.
  setWrench(live) {
    const { body, point, goal, stiffness, damping } = this.pull;
    const { q, qd } = this.state_;
    const T = fromRows(this.kernel.poses(q), 16 * body);
    const t = this.kernel.call("twists", { q, qd }).subarray(6 * body, 6 * body + 6);
    const velocity = add([t[3], t[4], t[5]], cross([t[0], t[1], t[2]], point)); // in the frame of the body
    const stretch = sub(within(T, goal), point);
    const force = sub(scale(stiffness, stretch), scale(damping, velocity));
    this.wrenches.fill(0);
    this.wrenches.set([...cross(point, force), ...force], 6 * body);
    live.wrenches = this.wrenches;
    this.pull.at = transform(T, point);
    this.pull.force = turned(T, force);
  }
}

// The torques of drives at a state and a time, as the steps of the kernel take them.
export function driveTorques(kernel, live, q, qd, t) {
  const { torque, stiffness, damping, target } = live.at ? { ...live, ...live.at(t) } : live;
  return Array.from(qd, (v, k) => {
    const c = kernel.coordinates[k];
    const spring = c < 0 || !stiffness ? 0 : stiffness[k] * (target[k] - q[c]) - damping[k] * v;
    return (torque ? torque[k] : 0) + spring;
  });
}
