// A motion of a closed mechanism with its drive at constant velocity: the curve of a point, the torque of the drive,
// and the forces in all bearings. A full turn, or the range between two dead positions of the drive.

import { accelerationsOf, drivenTorques, loadsOf, velocitiesOf } from "./loop_rates.js";
import { positionOf } from "./loop_range.js";
import { Motion } from "./motion.js";

const MARGIN = 0.01; // of a range that is left out at each end: torques grow without bound toward dead positions
const PIECES = 8; // parts of a step, where the whole one does not close
export const SAMPLES = 361; // one per degree of a turn, with both ends

export class Turn extends Motion {
  // point: { body, at }, the one whose curve is drawn; leads: velocities that determine the motion, the drive among
  // them
  constructor(app, { q, drive, leads, range, velocity, point }) {
    super(app.model, { name: "turn", capacity: SAMPLES });
    const margin = range.kind === "turns" ? 0 : MARGIN * (range.high - range.low);
    const [from, to] = [range.low + margin, range.high - margin];
    const begin =
      range.kind === "turns"
        ? q
        : range.branch.reduce((best, p) =>
            Math.abs(positionOf(app, p, drive) - from) < Math.abs(positionOf(app, best, drive) - from) ? p : best,
          );
    this.app = app;
    this.drive = drive;
    this.leads = leads;
    this.range = range;
    this.velocity = velocity;
    this.point = point;
    this.from = from;
    this.to = to;
    this.at = begin;
    this.ended = "";
    this.names = [...app.model.joints.map((j) => j.name), ...app.model.loops.map((x) => x.name)];
    this.loaded = app.kernel.has("closure_bias", "driven_torques", "loop_loads");
    const column = () => new Float64Array(SAMPLES);
    this.torque = column();
    this.gaps = column();
    this.path = [column(), column(), column()];
    this.forces = this.names.map(column);
    this.loads = [];
    this.qdd = [];
  }

  get axis() {
    const { label, unit } = this.app.model.velocities[this.drive];
    return { name: label, unit: unit.replace("/s", ""), first: this.from, rate: this.velocity };
  }

  // Between samples, the loops are closed with the drive where it is.
  state(t) {
    const found = super.state(t);
    const made = this.app.kernel.close(found.q, { held: this.leads });
    return made.closed ? { q: made.q, qd: found.qd } : found;
  }

  // A generator: it yields after every sample.
  *compute() {
    for (let k = 0; k < SAMPLES; k++) {
      const angle = this.from + ((this.to - this.from) * k) / (SAMPLES - 1);
      if (!this.sample(angle, k)) {
        this.ended = "The loops do not close beyond this position of the drive.";
        return;
      }
      yield;
    }
  }

  sample(angle, k) {
    const { app, drive, leads, velocity } = this;
    const made = this.closedAt(angle, 1);
    if (!made) return false;
    const q = (this.at = made.q);
    const qd = (this.qdBefore = velocitiesOf(
      app,
      q,
      leads,
      leads.map((v) => (v === drive ? velocity : 0)),
    ));
    this.gaps[k] = made.gap;
    const T = app.kernel.poses(q).subarray(16 * this.point.body, 16 * this.point.body + 16);
    const [x, y, z] = this.point.at;
    for (let i = 0; i < 3; i++) this.path[i][k] = T[4 * i] * x + T[4 * i + 1] * y + T[4 * i + 2] * z + T[4 * i + 3];
    if (this.loaded) {
      const qdd = accelerationsOf(
        app,
        q,
        qd,
        leads,
        leads.map(() => 0),
      );
      const { tau, multipliers } = drivenTorques(app, { q, qd, qdd }, leads);
      const loads = loadsOf(app, { q, qd, qdd }, multipliers);
      this.torque[k] = tau[drive];
      this.loads.push(loads);
      this.qdd.push(qdd);
      this.forces.forEach((column, i) => {
        column[k] = Math.hypot(loads[6 * i + 3], loads[6 * i + 4], loads[6 * i + 5]);
      });
    }
    this.push((angle - this.from) / velocity, q, qd);
    return true;
  }

  // The closed position at an angle of the drive, from the one before along its velocities, in smaller parts where it
  // must be.
  closedAt(angle, parts) {
    const { app, drive, leads, qdBefore } = this;
    const coordinate = app.kernel.coordinates[drive];
    let [q, made] = [this.at, null];
    for (let part = 1; part <= parts; part++) {
      const next = this.at[coordinate] + ((angle - this.at[coordinate]) * part) / parts;
      const ahead = qdBefore
        ? app.kernel.integrate(
            q,
            qdBefore.map((x) => (x * (next - q[coordinate])) / qdBefore[drive]),
          )
        : Float64Array.from(q);
      ahead[coordinate] = next;
      made = app.kernel.close(ahead, { held: leads });
      if (!made.closed) return parts < PIECES ? this.closedAt(angle, 2 * parts) : null;
      made.q[coordinate] = next;
      q = made.q;
    }
    return made;
  }
}
