// Curves of any quantity of a motion: of joints, bodies, frames, and of the whole mechanism, over time or against each
// other. Numbers are those of the library: SI units and radians, in the axes of the ground.
//
//   const all = quantitiesOf(app);                     // what this mechanism has: [{ name, objects, components, ... }]
//   const column = new Column(app, motion, all[0], 0); // one object of a quantity, which grows with the motion
//   column.values[component]

import { movingFrames } from "./inverse_kinematics.js";
import { anglesOf, forth, place, product } from "./poses.js";
import { reactionsAt, torquesAt } from "./torques.js";
import { add, cross, dot } from "./vectors.js";

const XYZ = ["x", "y", "z"];
const SIZED = [...XYZ, "size"];
const TORQUES = ["total", "gravity", "inertia", "Coriolis"];
const GRAVITY = { gravity: true, mass: 0 };

/**
 * A quantity: its objects by name, components of each, their unit, and at(sample, i), the numbers of object i at a
 * sample { q, qd, qdd }.
 * @typedef {{ name: string, objects: string[], components: string[], unit: (i: number, c: number) => string,
 *   at: (sample: any, i: number) => ArrayLike<number> }} Quantity
 */

/** @returns {Quantity[]} */
export const quantitiesOf = (app) =>
  [...ofJoints(app), ...ofPoints(app), ...ofBodies(app), ...ofLoads(app)].filter(Boolean);

// objects have a name or a label; unit: a text, or a function of an object's number.
const quantity = (name, objects, components, unit, at) => ({
  name,
  objects: objects.map((x) => x.name ?? x.label),
  components,
  unit: typeof unit === "function" ? unit : () => unit,
  at,
});

function ofJoints({ model: { coordinates, velocities } }) {
  const rate = (i) => velocities[i].unit;
  return [
    quantity(
      "joint position",
      coordinates,
      [""],
      (i) => coordinates[i].unit,
      ({ q }, i) => [q[i]],
    ),
    quantity("joint velocity", velocities, [""], rate, ({ qd }, i) => [qd[i]]),
    quantity(
      "joint acceleration",
      velocities,
      [""],
      (i) => `${rate(i)}^2`,
      ({ qdd }, i) => [qdd[i]],
    ),
  ];
}

// Centers of mass and frames.
function ofPoints({ model, kernel }) {
  const frames = movingFrames(model);
  const points = [
    ...model.bodies.map((b, body) => ({ name: `${b.name} center of mass`, body, point: b.com })),
    ...frames.map((f) => ({ name: f.name, body: f.body, point: place(f.pose) })),
  ];
  const moves = kernel.has("twists");
  return [
    quantity("point position", points, XYZ, "m", ({ q }, i) => placeOf(kernel, q, points[i])),
    moves && quantity("point velocity", points, SIZED, "m/s", (s, i) => sized(rates(kernel, s, points[i]).v)),
    moves &&
      kernel.has("twist_rates") &&
      quantity("point acceleration", points, SIZED, "m/s^2", (s, i) => sized(rates(kernel, s, points[i]).a)),
    quantity("frame angles", frames, ["roll", "pitch", "yaw"], "rad", ({ q }, i) => {
      const { body, pose } = frames[i];
      return anglesOf(product(poseAt(kernel, q, body), pose)).slice(3);
    }),
  ];
}

function ofBodies(app) {
  const { model, kernel } = app;
  if (!kernel.has("twists")) return [];
  const turn = (name) => (s, i) => {
    const six = kernel.call(name, s).slice(6 * i, 6 * i + 3);
    return sized(forth(poseAt(kernel, s.q, i), six));
  };
  return [
    quantity("angular velocity", model.bodies, SIZED, "rad/s", turn("twists")),
    kernel.has("twist_rates") && quantity("angular acceleration", model.bodies, SIZED, "rad/s^2", turn("twist_rates")),
    quantity("energy of a body", model.bodies, ["kinetic", "potential"], "J", (s, i) => bodyEnergy(app, s, i)),
  ];
}

function ofLoads(app) {
  const { model, kernel } = app;
  const { velocities } = model;
  const all = [{ name: "all" }];
  const isDriven = !model.closed && !model.joints.some((joint) => joint.floats) && kernel.has("inverse_dynamics");
  const inverse = (s) => kernel.call("inverse_dynamics", s);
  return [
    kernel.has("kinetic_energy", "potential_energy") &&
      quantity("energies", all, energyNames(kernel), "J", ({ q, qd }) => Object.values(kernel.energies(q, qd))),
    kernel.has("center_of_mass") &&
      quantity("center of mass", all, XYZ, "m", ({ q }) => kernel.call("center_of_mass", { q }).slice()),
    isDriven &&
      kernel.has("gravity_torque") &&
      quantity(
        "torque by cause",
        velocities,
        TORQUES,
        (i) => velocities[i].effort,
        (s, i) => {
          const found = torquesAt(app, s, GRAVITY);
          return TORQUES.map((name) => found[name][i]);
        },
      ),
    isDriven && quantity("power", velocities, [""], "W", (s, i) => [inverse(s)[i] * s.qd[i]]),
    isDriven &&
      kernel.has("reactions") &&
      quantity("reaction", model.joints, SIZED, "N", (s, i) => sized(reactionsAt(app, s, GRAVITY)[i].vector)),
  ];
}

const energyNames = (kernel) => ["kinetic", "potential", ...(kernel.has("spring_energy") ? ["springs"] : []), "total"];
const sized = (v) => [...v, Math.hypot(...v)];
const poseAt = (kernel, q, body) => kernel.poses(q).slice(16 * body, 16 * body + 16);

function placeOf(kernel, q, { body, point }) {
  const T = poseAt(kernel, q, body);
  return forth(T, point).map((x, k) => x + T[4 * k + 3]);
}

// Velocity and acceleration of a point of a body, in the axes of the ground.
function rates(kernel, { q, qd, qdd }, { body, point }) {
  const T = poseAt(kernel, q, body);
  const six = (name, inputs) => Array.from(kernel.call(name, inputs).subarray(6 * body, 6 * body + 6));
  const t = six("twists", { q, qd });
  const w = t.slice(0, 3);
  const around = cross(w, point);
  const v = forth(T, add(t.slice(3), around));
  if (!kernel.has("twist_rates")) return { v, a: [0, 0, 0] };
  const dt = six("twist_rates", { q, qd, qdd });
  return { v, a: forth(T, add(add(dt.slice(3), cross(dt.slice(0, 3), point)), cross(w, around))) };
}

function bodyEnergy({ kernel, model }, sample, i) {
  const { mass, com, inertia } = model.bodies[i];
  const [xx, yy, zz, xy, yz, zx] = inertia;
  const { v } = rates(kernel, sample, { body: i, point: com });
  const [x, y, z] = kernel.call("twists", sample).subarray(6 * i, 6 * i + 3);
  const turn = xx * x * x + yy * y * y + zz * z * z + 2 * (xy * x * y + yz * y * z + zx * z * x);
  const potential = -mass * dot(model.gravity, placeOf(kernel, sample.q, { body: i, point: com }));
  return [0.5 * mass * dot(v, v) + 0.5 * turn, potential];
}

// The sample k of a motion, with its accelerations, or those of its velocities by differences.
export function sampleOf(motion, k) {
  const { nq, nv } = motion.model;
  const q = motion.q.slice(k * nq, (k + 1) * nq);
  const qd = motion.qd.slice(k * nv, (k + 1) * nv);
  return { t: motion.t[k], q, qd, qdd: motion.accelerationAt(k) ?? slopes(motion, k) };
}

// Derivatives of the velocities at a sample: of order four between equal steps, of order two elsewhere.
function slopes({ t, qd, count, model: { nv } }, k) {
  const at = (j, i) => qd[j * nv + i];
  const h = t[k + 1] - t[k];
  const isEven = k > 1 && k + 2 < count && [-2, -1, 1].every((j) => Math.abs(t[k + j + 1] - t[k + j] - h) < 1e-9);
  if (isEven)
    return Float64Array.from(
      { length: nv },
      (_, i) => (8 * (at(k + 1, i) - at(k - 1, i)) - (at(k + 2, i) - at(k - 2, i))) / (12 * h),
    );
  if (count < 3)
    return Float64Array.from({ length: nv }, (_, i) => (count < 2 ? 0 : (at(1, i) - at(0, i)) / (t[1] - t[0])));
  const near = [0, 1, 2].map((j) => Math.min(Math.max(0, k - 1), count - 3) + j); // of the parabola through them
  const parts = near.map((j) => {
    const [a, b] = near.filter((other) => other !== j).map((other) => t[other]);
    return (2 * t[k] - a - b) / ((t[j] - a) * (t[j] - b));
  });
  return Float64Array.from({ length: nv }, (_, i) => near.reduce((sum, j, n) => sum + parts[n] * at(j, i), 0));
}

const UNSURE = 2; // samples at the end whose accelerations change as the motion grows

// One object of a quantity along a motion, computed when it is read; a motion that grows or is cut is followed.
export class Column {
  constructor(app, motion, quantity, i) {
    this.kernel = app.kernel;
    this.numbers = app.kernel.snapshot();
    this.motion = motion;
    this.at = (sample) => quantity.at(sample, i);
    this.known = quantity.components.map(() => []);
    this.sure = 0; // samples that do not change any more
    this.cuts = motion.cuts;
  }

  // An array of numbers per component.
  get values() {
    const { motion, known, kernel } = this;
    if (motion.cuts !== this.cuts) {
      this.sure = Math.max(0, Math.min(this.sure, motion.count - UNSURE));
      for (const x of known) x.length = Math.min(x.length, this.sure);
    }
    this.cuts = motion.cuts;
    if (this.sure >= motion.count || (motion.extend && known[0].length === motion.count)) return known;
    kernel.with(this.numbers, () => {
      for (let k = this.sure; k < motion.count; k++) {
        const found = this.at(sampleOf(motion, k));
        known.forEach((x, c) => {
          x[k] = found[c];
        });
      }
    });
    for (const x of known) x.length = motion.count;
    this.sure = motion.extend ? Math.max(0, motion.count - UNSURE) : motion.count;
    return known;
  }
}
