// Arrows of forces while a motion is computed: reactions of joints, torques of drives, and forces of contacts.

import { contactForces, withContacts } from "./ground.js";
import { driveTorques } from "./recording.js";
import { originOf, turned } from "./vectors.js";

const LONG = 0.25; // of the size of the mechanism: the arrow of its weight, and of the largest torque so far

// Whether the page can compute reactions: of trees, on which nothing acts but gravity, drives and the pointer.
export function hasReactions({ model, kernel }) {
  return Boolean(kernel?.has("reactions", "forward_dynamics")) && !model.closed && !model.passive;
}

export class LiveArrows {
  constructor(app) {
    const { model, data } = app;
    const weight = model.bodies.reduce((sum, b) => sum + b.mass, 0) * (Math.hypot(...model.gravity) || 9.81);
    this.app = app;
    this.perNewton = (LONG * data.scene.size) / (weight || 1);
    this.most = { N: 0, "N m": 0 };
  }

  // Arrows at a state under { torque, stiffness, damping, target, wrenches }, at the present time of a motion.
  at(q, qd, drives, motion = null) {
    const { app } = this;
    const { kernel, model, store } = app;
    const show = store.get("show");
    const matrices = app.matrices(q);
    const tau = Float64Array.from(driveTorques(kernel, drives, q, qd, store.get("time")));
    const felt = (motion && contactForces?.(app, motion)) || []; // a page without a ground leaves it out
    const length = this.perNewton;
    const out = felt.map(({ name, at, force }) => {
      return { name, group: "contacts", unit: "N", origin: at, vector: force, length };
    });
    if (show.reactions && hasReactions(app)) {
      const wrenches = felt.length ? withContacts(felt, matrices, drives.wrenches) : drives.wrenches;
      const qdd = kernel.call("forward_dynamics", { q, qd, tau, wrenches }).slice();
      const w = kernel.call("reactions", { q, qd, qdd, wrenches });
      model.joints.forEach((joint, i) => {
        if (joint.floats) return;
        const vector = turned(matrices[i], [w[6 * i + 3], w[6 * i + 4], w[6 * i + 5]]);
        out.push({ name: joint.name, group: "reactions", unit: "N", origin: originOf(matrices[i]), vector, length });
      });
    }
    if (show.drives && (drives.torque || drives.stiffness)) out.push(...this.torques(matrices, tau));
    return out;
  }

  torques(matrices, tau) {
    const { model, data } = this.app;
    const axial = model.joints.flatMap((joint, i) => (joint.axial ? [[joint, i]] : []));
    for (const [joint] of axial) {
      const { effort } = model.velocities[joint.v[0]];
      this.most[effort] = Math.max(this.most[effort], Math.abs(tau[joint.v[0]]));
    }
    return axial.map(([joint, i]) => {
      const { effort } = model.velocities[joint.v[0]];
      const vector = turned(
        matrices[i],
        joint.axes.map((row) => row[2] * tau[joint.v[0]]),
      );
      const length = (LONG * data.scene.size) / (this.most[effort] || 1);
      return {
        name: `drive of ${joint.name}`,
        group: "drives",
        unit: effort,
        origin: originOf(matrices[i]),
        vector,
        length,
      };
    });
  }
}
