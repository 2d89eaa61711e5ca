// Numbers of lessons by the page's own kernel: what formulas may name, and the answers of questions. The
// library computes the same in lessons/answers.py.

import { evaluate } from "./formulas.js";
import { frameJacobian, framePose, movingFrames } from "./inverse_kinematics.js";
import { Motion } from "./motion.js";
import { FRAME } from "./recording.js";

const STEPS = 17; // Runge-Kutta steps per sample, of about 1 ms
// Functions of the mechanism that formulas call; arguments that are left out are zero.
const CALLED = [
  "inverse_dynamics",
  "forward_dynamics",
  "gravity_torque",
  "inertia_matrix",
  "kinetic_energy",
  "potential_energy",
  "reactions",
  "center_of_mass",
  "momentum",
  "twists",
  "closure_jacobian",
];
const RECURSIONS = ["inverse_recursion", "forward_recursion"]; // a formula names one of their outputs last

// What formulas may name: functions, and the free parameters of the mechanism.
export function namesOf(app) {
  const { kernel, model } = app;
  const frames = movingFrames(model);
  const frame = (name) => frames.find((f) => f.name === name);
  const body = (name) => model.bodies.find((b) => b.name === name);
  const coordinate = (label) => model.coordinates.findIndex((c) => c.label === label);
  const named = (f, given) => {
    const names = kernel.functions[f].metadata.inputs.map((input) => input.name);
    return Object.fromEntries(given.map((x, k) => [names[k], x.data ?? x]));
  };
  // A number, or an array with its shape; a copy, because the next call uses the same memory.
  const result = (f, name, output) => {
    const { shape } = kernel.functions[f].metadata.outputs.find((a) => a.name === name);
    return shape.length ? { data: output.slice(), shape } : output[0];
  };
  const single =
    (f) =>
    (...given) =>
      result(f, kernel.functions[f].metadata.outputs[0].name, kernel.call(f, named(f, given)));
  const several =
    (f) =>
    (...given) => {
      const name = given.pop();
      return result(f, name, kernel.call(f, named(f, given))[name]);
    };
  return {
    ...Object.fromEntries(model.parameters.map(({ name }, k) => [name, kernel.parameters[k]])),
    ...Object.fromEntries(CALLED.map((f) => [f, single(f)])),
    ...Object.fromEntries(RECURSIONS.map((f) => [f, several(f)])),
    mass: (name) => body(name).mass,
    com: (name) => body(name).com,
    inertia: (name) => body(name).inertia,
    pose: (q, name) => ({ data: framePose(kernel, q, frame(name)), shape: [4, 4] }),
    jacobian: (q, name) => ({ data: frameJacobian(kernel, q, frame(name)), shape: [6, model.nv] }),
    closed: (q, joint) => kernel.close(q, { held: [model.coordinates[coordinate(joint)].velocity] }).q,
    closed_velocities: (q, qd, joint) =>
      kernel.closeVelocities(q, qd, { held: [model.coordinates[coordinate(joint)].velocity] }),
    motion: (q, qd, duration) => freeMotion(app, q, qd, duration),
    crossing: (motion, label, level, count) => crossing(motion, coordinate(label), level, count),
    at: (motion, label, t) => motion.state(t).q[coordinate(label)],
    rate: (motion, label, t) => motion.state(t).qd[model.coordinates[coordinate(label)].velocity],
    largest: (motion, label) => largest(motion.q, model.nq, coordinate(label), motion.count),
    fastest: (motion, label) =>
      largest(motion.qd, model.nv, model.coordinates[coordinate(label)].velocity, motion.count),
    parting: (a, b, apart) =>
      a.t.find(
        (_, i) =>
          i < a.count &&
          Math.hypot(...a.q.subarray(i * model.nq, (i + 1) * model.nq).map((x, k) => x - b.q[i * model.nq + k])) >
            apart,
      ),
    energy: (motion, t) => {
      const { index, share } = motion.find(t);
      const e = motion.energies;
      return share ? e[index] + share * (e[index + 1] - e[index]) : e[index];
    },
  };
}

// The right number of a question, with the given numbers of the mechanism, whatever the reader has changed.
export function answerOf(app, question) {
  const { kernel, data } = app;
  const { functions, parameters } = kernel;
  Object.assign(kernel, { functions: kernel.given, parameters: Float64Array.from(data.first.parameters) });
  try {
    const known = namesOf(app);
    for (const [name, formula] of Object.entries(question.given)) known[name] = evaluate(formula, known);
    return evaluate(question.answer, known);
  } finally {
    Object.assign(kernel, { functions, parameters });
  }
}

// A motion without drives, by the steps of the mode Simulate.
function freeMotion({ kernel, model }, q, qd, duration) {
  const motion = new Motion(model);
  const state = kernel.begin(q, kernel.closeVelocities(q, qd));
  const energies = [];
  const count = Math.round(duration / FRAME);
  for (let k = 0; k <= count; k++) {
    state.t = k * FRAME;
    motion.push(state.t, state.q, state.qd);
    energies.push(kernel.energies(state.q, state.qd).total);
    if (k < count && !kernel.advance(state, FRAME / STEPS, STEPS)) break;
  }
  return Object.assign(motion, { energies });
}

function crossing(motion, k, level, count) {
  const { nq } = motion.model;
  let found = 0;
  for (let i = 0; i + 1 < motion.count; i++) {
    const [a, b] = [motion.q[i * nq + k] - level, motion.q[(i + 1) * nq + k] - level];
    if (!(a * b < 0) || ++found < count) continue;
    let [low, high] = [motion.t[i], motion.t[i + 1]];
    for (let round = 0; round < 60; round++) {
      const middle = (low + high) / 2;
      if ((motion.state(middle).q[k] - level) * a > 0) low = middle;
      else high = middle;
    }
    return low;
  }
  return NaN;
}

function largest(values, stride, k, count) {
  let most = 0;
  for (let i = 0; i < count; i++) most = Math.max(most, Math.abs(values[i * stride + k]));
  return most;
}
