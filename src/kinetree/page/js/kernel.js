// The mechanism's own functions, compiled to WebAssembly, by name.
//
//   kernel.has("inverse_dynamics");  kernel.call("inverse_dynamics", { q, qd, qdd });   // a view, until the next call
//   kernel.poses(q);  kernel.energies(q, qd);  kernel.jacobian(q, body, point);  kernel.close(q, { held: [0] });
//   kernel.step(state, dt, inputs)
//
// Numbers are those of the library: SI units and radians, [angular; linear], twists and wrenches in the frames of
// bodies. Inputs that are left out are zero; free parameters are always those of `kernel.parameters`.

import { load } from "../../targets/wasm/kinetree.mjs";
import { inner } from "./vectors.js";

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
    this.ground = data.ground; // what carries it, or null: page/ground.py
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
    if (!this.model.closed) return { q: Float64Array.from(q), gap: 0, closed: true };
    const found = this.call("close_loops", { q, held: this.model.velocities.map((_, k) => Number(held.includes(k))) });
    const made = { q: found.closed.slice(), closed: found.gap[0] <= this.thresholds.closed };
    return { ...made, gap: this.gap(made.q) };
  }

  // Velocities that keep the loops closed, nearest to the given ones. With a bias dJ/dt qd, they are accelerations.
  closeVelocities(q, qd, { held = [], bias = null } = {}) {
    if (!this.model.closed) return Float64Array.from(qd);
    const { nv } = this.model;
    const { J, A, rows, columns } = this.loopRates(q, held);
    const b = rows.map((row, i) => -row * (inner(J.subarray(i * nv, i * nv + nv), qd) + (bias ? bias[i] : 0)));
    const { x } = this.decompose(A, rows.length, nv, { b, least: this.thresholds.rank });
    return Float64Array.from(qd, (v, k) => v + x[k] * columns[k]);
  }

  // Factors of the velocities and of the equations, so that metres and radians compare: size for lengths, 1 for angles.
  get units() {
    const { size, model } = this;
    return {
      columns: model.velocities.map((v) => (v.unit === "m/s" ? size : 1)),
      rows: model.equations.map((e) => (e.unit === "m" ? 1 / size : 1)),
    };
  }

  // J of the loops at a position; A, which is J with these factors, and without `held` velocities; and the factors.
  loopRates(q, held = []) {
    const { model, units } = this;
    const { rows, columns } = units;
    const free = columns.map((x, k) => (held.includes(k) ? 0 : x));
    const J = this.call("closure_jacobian", { q }).slice();
    const A = J.map((x, k) => x * rows[Math.floor(k / model.nv)] * free[k % model.nv]);
    return { J, A, rows, columns };
  }

  // Singular values of A [m, n] by rows: { values [n], largest first, left: n vectors [m], right: n vectors [n], rank,
  // x } with A = sum of values[k] left[k] right[k]^T. Where a value is zero, left[k] is zero, and right[k] is a
  // direction that A does not see. The rank counts values above `least` times the largest; x is the smallest one with
  // |A x - b|^2 + damping |x|^2 as small as it can be, in these directions.
  decompose(A, m, n, { b = null, least = 0, damping = 0 } = {}) {
    const { inputs, outputs, run } = this.given.singular_values;
    inputs.A.set(A);
    if (b) inputs.b.set(b);
    else inputs.b.fill(0);
    [inputs.rows[0], inputs.columns[0], inputs.least[0], inputs.damping[0]] = [m, n, least, damping];
    run();
    const values = outputs.values.slice(0, n);
    const vectors = (array, length) => Array.from(values, (_, k) => array.slice(k * length, (k + 1) * length));
    return {
      values,
      left: vectors(outputs.left, m),
      right: vectors(outputs.right, n),
      rank: values.findLastIndex((x) => x > least * values[0]) + 1,
      x: outputs.x.slice(0, n),
    };
  }

  // Whether a ground can carry it: not with changed numbers for which the page has no steps with contact.
  get isCarried() {
    return Boolean(this.ground) && this.has("contact_step");
  }

  // Begin a motion that `advance` carries on: { q, qd, t, ... } with typed arrays of its own. On a ground of a friction
  // it has the impulses of the contacts [n, 3], normal first; with null it falls through.
  begin(q, qd, t = 0, friction = null) {
    const isOn = friction !== null && this.isCarried;
    const impulses = isOn ? new Float64Array(3 * this.ground.names.length) : null;
    return { q: Float64Array.from(q), qd: Float64Array.from(qd), t, impulses, friction };
  }

  // Steps of dt by the classical Runge-Kutta method, or by time steps with contact, under { torque, stiffness, damping,
  // target, wrenches }, of which at(t) returns those that vary: they are constant in each step. Loops stay closed. The
  // state is changed in place; the result is true if it is finite.
  advance(state, dt, count, /** @type {Record<string, any>} */ { at, ...live } = {}) {
    if (at) {
      for (let k = 0; k < count; k++)
        if (!this.advance(state, dt, 1, { ...live, ...at(state.t + dt / 2) })) return false;
      return true;
    }
    const { inputs, outputs, run } = state.impulses ? this.functions.contact_step : this.functions.time_step;
    for (const [name, [first, size]] of Object.entries(this.live)) {
      const given = live[name];
      if (given) inputs.tau.set(given, first);
      else inputs.tau.fill(0, first, first + size);
    }
    if (inputs.parameters) inputs.parameters.set(this.parameters);
    if (state.impulses) {
      inputs.parameters?.set(this.contactNumbers(state.friction, dt, live), this.parameters.length);
      inputs.settings.set([dt, count]);
      inputs.impulses.set(state.impulses);
    } else {
      inputs.dt[0] = dt;
      inputs.steps[0] = count;
    }
    if (inputs.t) inputs.t[0] = state.t;
    inputs.q.set(state.q);
    inputs.qd.set(state.qd);
    run(); // all steps in one call
    state.q.set(outputs.q_next);
    state.qd.set(outputs.qd_next);
    state.impulses?.set(outputs.impulses_next);
    state.t += count * dt;
    return state.qd.every(Number.isFinite) && state.q.every(Number.isFinite);
  }

  // The further parameters of steps with contact: friction, and inertias by which springs and dampers act implicitly.
  contactNumbers(friction, dt, live) {
    const { stiffness, damping } = live;
    const { friction: own, armatures } = this.ground;
    const added = armatures.map((k) => (stiffness ? dt * damping[k] + dt * dt * stiffness[k] : 0));
    return own === null ? added : [friction, ...added];
  }
}
