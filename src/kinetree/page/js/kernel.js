// The mechanism's own functions, compiled to WebAssembly, by name.
//
//   kernel.has("inverse_dynamics");  kernel.call("inverse_dynamics", { q, qd, qdd });   // a view, until the next call
//   kernel.poses(q);  kernel.energies(q, qd);  kernel.jacobian(q, body, point);  kernel.close(q, { held: [0] });
//   kernel.step(state, dt, inputs)
//
// Numbers are those of the library: SI units and radians, [angular; linear], twists and wrenches in the frames of
// bodies. Inputs that are left out are zero; free parameters are always those of `kernel.parameters`.

import { load } from "../../targets/wasm/kinetree.mjs";
import { smallestStep } from "./linear.js";

const FINE = 1e-2; // of the gap at which loops count as closed: iterations go on to this, for velocities and forces
const ROUNDS = 40;

export async function openKernel(data, model, parameters, size) {
  if (!data) return null;
  const modules = [data.wasm, data.editable?.wasm].filter(Boolean).map((wasm) => load(wasm));
  return new Kernel(await Promise.all(modules), data, model, parameters, size);
}

export class Kernel {
  /** @param {any[]} modules the loaded modules: of the given mechanism, and perhaps with its numbers as inputs */
  constructor([given, editable], data, model, parameters, size) {
    this.given = given.functions;
    this.editable = editable?.functions; // with the numbers of the mechanism as inputs, after the free parameters
    this.functions = this.given;
    this.model = model;
    this.size = size;
    this.live = data.live; // places of the inputs of a step, by name
    this.coordinates = data.coordinates; // the coordinate of each velocity, or -1
    this.thresholds = data.thresholds; // the library's: page/kernel.py
    this.frame = data.frame; // the name of the frame of `inverse_kinematics`
    this.parameters = Float64Array.from(parameters);
    this.bytes = data.wasm.length;
  }

  // Use the numbers of the mechanism that the reader typed, or null for the given ones, for which the functions are
  // quicker.
  useNumbers(numbers) {
    const free = this.parameters.slice(0, this.model.parameters.length);
    this.functions = numbers ? this.editable : this.given;
    this.parameters = numbers ? Float64Array.from([...free, ...numbers]) : free;
  }

  // The present numbers, and a function of them later: with(kernel.snapshot(), () => ...).
  snapshot() {
    return { functions: this.functions, parameters: this.parameters.slice() };
  }

  with(numbers, work) {
    const now = { functions: this.functions, parameters: this.parameters };
    Object.assign(this, numbers);
    try {
      return work();
    } finally {
      Object.assign(this, now);
    }
  }

  has(...names) {
    return names.every((name) => name in this.functions);
  }

  // Returns the output, or all outputs by name if there are several. Copy what must outlive the next call.
  call(name, inputs) {
    const f = this.functions[name];
    if (!f) throw new Error(`this page has no function '${name}'; it has ${Object.keys(this.functions).join(", ")}`);
    for (const array of f.metadata.inputs) {
      const view = f.inputs[array.name];
      const given = array.name === "parameters" ? this.parameters : inputs[array.name];
      if (given === undefined) view.fill(0);
      else if (typeof given === "number") view[0] = given;
      else {
        if (given.length !== view.length)
          throw new RangeError(`${name}: ${array.name} has ${given.length} numbers; expected ${view.length}`);
        view.set(given);
      }
    }
    f.run();
    const { outputs } = f.metadata;
    return outputs.length === 1 ? f.outputs[outputs[0].name] : f.outputs;
  }

  // Poses of all bodies [nb, 4, 4], row by row.
  poses(q) {
    return this.call("poses", { q });
  }

  // Kinetic energy, potential energy of gravity, that of springs if there are any, and their sum [J].
  energies(q, qd) {
    const kinetic = this.call("kinetic_energy", { q, qd })[0];
    const potential = this.call("potential_energy", { q })[0];
    if (!this.has("spring_energy")) return { kinetic, potential, total: kinetic + potential };
    const springs = this.call("spring_energy", { q })[0];
    return { kinetic, potential, springs, total: kinetic + potential + springs };
  }

  // q moved by velocities over a unit of time, and the velocities that move one q into another.
  integrate(q, dq) {
    return this.call("integrate", { q, qd: dq }).slice();
  }

  difference(q, q2) {
    return this.call("difference", { q, q2 }).slice();
  }

  // [6, nv], angular part first, in the axes of the ground, of a point in the frame of a body.
  jacobian(q, body, point = [0, 0, 0]) {
    const { nv } = this.model;
    const out = new Float64Array(6 * nv);
    const T = this.poses(q).slice(16 * body, 16 * body + 12);
    const qd = new Float64Array(nv);
    for (let k = 0; k < nv; k++) {
      qd[k] = 1;
      const t = this.call("twists", { q, qd }).subarray(6 * body, 6 * body + 6);
      qd[k] = 0;
      const [w, v] = [
        [t[0], t[1], t[2]],
        [t[3], t[4], t[5]],
      ];
      const moved = [
        v[0] + w[1] * point[2] - w[2] * point[1],
        v[1] + w[2] * point[0] - w[0] * point[2],
        v[2] + w[0] * point[1] - w[1] * point[0],
      ];
      for (let i = 0; i < 3; i++) {
        out[i * nv + k] = T[4 * i] * w[0] + T[4 * i + 1] * w[1] + T[4 * i + 2] * w[2];
        out[(3 + i) * nv + k] = T[4 * i] * moved[0] + T[4 * i + 1] * moved[1] + T[4 * i + 2] * moved[2];
      }
    }
    return out;
  }

  // The diagonal of the inertia matrix: what each joint moves if the others stand still.
  inertias(q) {
    const { nv } = this.model;
    const still = this.call("inverse_dynamics", { q }).slice();
    const qdd = new Float64Array(nv);
    return Float64Array.from({ length: nv }, (_, k) => {
      qdd.fill(0);
      qdd[k] = 1;
      return this.call("inverse_dynamics", { q, qdd })[k] - still[k];
    });
  }

  gap(q) {
    return this.model.closed ? Math.max(...Array.from(this.call("closure_residual", { q }), Math.abs)) : 0;
  }

  // Move q so that the loops close, without the `held` velocities (their joints stay): { q, gap, closed }.
  close(q, { held = [] } = {}) {
    let now = Float64Array.from(q);
    if (!this.model.closed) return { q: now, gap: 0, closed: true };
    const { nv } = this.model;
    const weights = new Float64Array(nv).fill(1);
    for (const k of held) weights[k] = 0;
    let gap = this.gap(now);
    const enough = this.thresholds.closed * this.size;
    for (let round = 0; round < ROUNDS && gap > FINE * enough; round++) {
      const b = this.call("closure_residual", { q: now }).map((x) => -x);
      const J = this.call("closure_jacobian", { q: now });
      const dq = smallestStep(J, b, b.length, nv, weights);
      const most = Math.max(...Array.from(dq, Math.abs));
      // far from the solution, a full step may leave its branch
      if (most > 0.5) for (let k = 0; k < nv; k++) dq[k] *= 0.5 / most;
      const next = this.integrate(now, dq);
      const then = this.gap(next);
      if (!(then < gap) && gap <= enough) break; // rounding
      [now, gap] = [next, then];
    }
    return { q: now, gap, closed: gap <= enough };
  }

  // Velocities that keep the loops closed, nearest to the given ones.
  closeVelocities(q, qd, { held = [] } = {}) {
    if (!this.model.closed) return Float64Array.from(qd);
    const { nv } = this.model;
    const weights = new Float64Array(nv).fill(1);
    for (const k of held) weights[k] = 0;
    const J = this.call("closure_jacobian", { q });
    const m = J.length / nv;
    const b = Float64Array.from(
      { length: m },
      (_, i) => -J.subarray(i * nv, i * nv + nv).reduce((s, x, k) => s + x * qd[k], 0),
    );
    const change = smallestStep(J, b, m, nv, weights);
    return Float64Array.from(qd, (x, k) => x + change[k]);
  }

  // Begin a motion that `advance` carries on: { q, qd, t, ... } with typed arrays of its own.
  begin(q, qd, t = 0) {
    return { q: Float64Array.from(q), qd: Float64Array.from(qd), t };
  }

  // Steps of dt by the classical Runge-Kutta method, under { torque, stiffness, damping, target, wrenches }.
  // Loops stay closed. The state is changed in place; the result is true if it is finite.
  advance(state, dt, count, live = {}) {
    const f = this.functions.time_step;
    const { inputs, outputs } = f;
    for (const [name, [first, size]] of Object.entries(this.live)) {
      const given = live[name];
      if (given) inputs.tau.set(given, first);
      else inputs.tau.fill(0, first, first + size);
    }
    if (inputs.parameters) inputs.parameters.set(this.parameters);
    inputs.dt[0] = dt;
    inputs.steps[0] = count;
    if (inputs.t) inputs.t[0] = state.t;
    inputs.q.set(state.q);
    inputs.qd.set(state.qd);
    f.run(); // all steps in one call
    state.q.set(outputs.q_next);
    state.qd.set(outputs.qd_next);
    state.t += count * dt;
    return state.qd.every(Number.isFinite) && state.q.every(Number.isFinite);
  }
}
