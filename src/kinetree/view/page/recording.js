// A motion that is computed while it is shown: steps of the kernel under drives and a spring of the pointer, recorded at
// every frame with energies and torques of the drives.

import { Motion } from "./motion.js";
import { add, cross, fromRows, scale, sub, transform, within } from "./vectors.js";

export const FRAME = 1 / 60; // [s] between samples
const AHEAD = 12; // [ms] of computation within a frame of the screen, so that the page stays responsive

// Runge-Kutta steps between two samples, of at most this length [s].
export const stepsPerFrame = (step) => Math.max(1, Math.ceil(FRAME / step - 1e-9));

export class Recording extends Motion {
  // drives(): { torque, stiffness, damping, target } now; step: [s] of a Runge-Kutta step
  constructor(app, { q, qd, drives, step, name = "motion" }) {
    super(app.model, { name });
    const { kernel } = app;
    Object.assign(this, { app, kernel, drives, step, pull: null, ended: "", touched: false });
    this.state_ = kernel.begin(q, kernel.closeVelocities(q, qd));
    this.wrenches = new Float64Array(6 * app.model.bodies.length);
    this.columns = [
      { name: "energy", labels: ["kinetic", "potential", "total"], units: ["J", "J", "J"], values: [[], [], []] },
      { name: "drive torque", labels: app.model.velocities.map((v) => v.label), units: app.model.velocities.map((v) => v.effort), values: app.model.velocities.map(() => []) },
    ];
    // The momentum of a mechanism that floats tells whether it is moved from outside.
    this.floats = kernel.has("momentum") && app.model.joints.some((joint, i) => joint.floats && app.model.bodies[i].parent < 0);
    if (this.floats) this.columns.push({ name: "momentum", labels: ["lx", "ly", "lz", "px", "py", "pz"], units: [...Array(3).fill("N m s"), ...Array(3).fill("N s")], values: [[], [], [], [], [], []] });
    this.record();
  }

  record() {
    const { state_: state, kernel, columns } = this;
    this.push(state.t, state.q, state.qd);
    const e = kernel.energies(state.q, state.qd);
    [e.kinetic, e.potential, e.total].forEach((x, k) => columns[0].values[k].push(x));
    driveTorques(kernel, this.drives(), state.q, state.qd).forEach((x, k) => columns[1].values[k].push(x));
    if (this.floats) kernel.call("momentum", { q: state.q, qd: state.qd }).forEach((x, k) => columns[2].values[k].push(x));
  }

  // Compute on to a time, within the time that a frame leaves; returns how far the motion is known.
  extend(until, { patience = AHEAD } = {}) {
    const began = performance.now();
    while (this.end < until - 1e-9 && performance.now() - began < patience && this.frame()) this.record();
    return this.end;
  }

  // One frame of steps; false where the numbers leave the finite range.
  frame() {
    const { state_: state, kernel } = this;
    const count = stepsPerFrame(this.step);
    const goal = (this.count ? this.t[this.count - 1] : 0) + FRAME;
    const live = this.drives();
    let good = true;
    if (this.pull) {
      for (let k = 0; k < count && good; k++) {
        this.setWrench(live);
        good = kernel.advance(state, FRAME / count, 1, live);
      }
    } else good = kernel.advance(state, FRAME / count, count, live);
    state.t = goal;
    if (!good) {
      this.ended = "The numbers left the finite range. Take a shorter step or softer drives.";
      this.extend = undefined;
    }
    return good;
  }

  // Go on from an earlier sample: what came after it is forgotten.
  resume(t) {
    this.cut(t + 1e-9);
    if (this.count > 1) this.touched = true; // what follows differs from a motion with these inputs from the start
    const { q, qd } = this.state(this.end);
    Object.assign(this.state_, this.kernel.begin(q, qd, this.end));
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
  }
}

// The torques of drives at a state, as the steps of the kernel take them.
export function driveTorques(kernel, { torque, stiffness, damping, target }, q, qd) {
  return Array.from(qd, (v, k) => {
    const c = kernel.coordinates[k];
    const spring = c < 0 || !stiffness ? 0 : stiffness[k] * (target[k] - q[c]) - damping[k] * v;
    return (torque ? torque[k] : 0) + spring;
  });
}
