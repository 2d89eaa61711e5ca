// Torques of a motion by cause: gravity, inertia, Coriolis and centrifugal terms, and a payload; their sum is the
// total.

import { back, forth, place } from "./poses.js";

export const CAUSES = ["gravity", "inertia", "Coriolis", "payload"];

// { total, gravity, inertia, Coriolis, payload, wrenches } at a sample { q, qd, qdd }, each an array of one torque per
// velocity. load: { gravity: whether it acts, mass [kg] and frame of a payload, a point at the origin of the frame }
export function torquesAt(app, { q, qd, qdd }, load) {
  const { kernel, model } = app;
  const call = (name, inputs) => kernel.call(name, inputs).slice();
  const still = call("gravity_torque", { q });
  const accelerated = call("inverse_dynamics", { q, qdd });
  const moving = call("inverse_dynamics", { q, qd });
  const whole = call("inverse_dynamics", { q, qd, qdd });
  const wrenches = load.mass > 0 ? payloadWrenches(app, { q, qd, qdd }, load) : null;
  const loaded = wrenches ? call("inverse_dynamics", { q, qd, qdd, wrenches }) : whole;
  const minus = (a, b) => a.map((x, k) => x - b[k]);
  const gravity = load.gravity ? still : new Float64Array(model.nv);
  const payload = minus(loaded, whole);
  return {
    gravity,
    inertia: minus(accelerated, still),
    Coriolis: minus(moving, still),
    payload,
    wrenches,
    total: loaded.map((x, k) => (load.gravity ? x : x - still[k])),
  };
}

// The wrench of a point mass on its body, about the body's origin in its frame: m (g - a) at the point.
function payloadWrenches(app, { q, qd, qdd }, { mass, frame, gravity }) {
  const { kernel, model } = app;
  const at = 6 * frame.body;
  const r = place(frame.pose);
  const t = kernel.call("twists", { q, qd }).slice(at, at + 6);
  const dt = kernel.call("twist_rates", { q, qd, qdd }).slice(at, at + 6);
  const [w, dw] = [
    [t[0], t[1], t[2]],
    [dt[0], dt[1], dt[2]],
  ];
  const around = add3(crossed(dw, r), crossed(w, crossed(w, r)));
  const T = kernel.poses(q).slice(16 * frame.body, 16 * frame.body + 16);
  const down = gravity ? back(T, model.gravity) : [0, 0, 0];
  const force = [0, 1, 2].map((k) => mass * (down[k] - dt[3 + k] - around[k]));
  const out = new Float64Array(6 * model.bodies.length);
  out.set([...crossed(r, force), ...force], at);
  return out;
}

// Forces of the joints on their bodies, in the axes of the ground: [{ origin, vector }], one per body.
export function reactionsAt(app, { q, qd, qdd }, load) {
  const { kernel, model } = app;
  const wrenches =
    load.mass > 0 ? payloadWrenches(app, { q, qd, qdd }, load) : new Float64Array(6 * model.bodies.length);
  if (!load.gravity) liftAll(app, q, wrenches);
  const rows = kernel.call("reactions", { q, qd, qdd, wrenches }).slice();
  const poses = kernel.poses(q).slice();
  return model.bodies.map((_, i) => {
    const T = poses.subarray(16 * i, 16 * i + 16);
    return { origin: place(T), vector: forth(T, rows.subarray(6 * i + 3, 6 * i + 6)) };
  });
}

// Add forces against the weights of all bodies, at their centers of mass.
function liftAll({ kernel, model }, q, wrenches) {
  const poses = kernel.poses(q).slice();
  model.bodies.forEach(({ mass, com }, i) => {
    const force = back(poses.subarray(16 * i, 16 * i + 16), model.gravity).map((x) => -mass * x);
    [...crossed(com, force), ...force].forEach((x, k) => {
      wrenches[6 * i + k] += x;
    });
  });
}

const add3 = (a, b) => [a[0] + b[0], a[1] + b[1], a[2] + b[2]];
const crossed = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
