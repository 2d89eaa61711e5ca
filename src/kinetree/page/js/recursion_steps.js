// The recursions of inverse and forward dynamics as lists of steps: a body, an equation with its number, and
// quantities.
//
// A step is { body, way, title, number, equation, values: [{ symbol, unit, numbers }], arrow }; numbers of vectors are
// [angular; linear] in the frame of the body. Equations are those of [Saha2013], for trees.

import { inner } from "./vectors.js";

const TWIST = ["rad/s", "m/s"];
const RATE = ["rad/s^2", "m/s^2"];
const WRENCH = ["N m", "N"];

const children = (model, i) => model.bodies.flatMap((b, k) => (b.parent === i ? [k] : []));
const six = (all, i) => all.subarray(6 * i, 6 * i + 6);
const dofs = (model, i) =>
  Array.from({ length: model.joints[i].v[1] - model.joints[i].v[0] }, (_, k) => model.joints[i].v[0] + k);

const turns = (model, v) => model.velocities[v].unit === "rad/s";

// The units of an inertia of velocity v, and of the ratio of two entries of the same column of the inertia matrix,
// those of rows i and j.
export const inertiaUnit = (model, v) => (turns(model, v) ? "kg m\u00b2" : "kg");
export const ratioUnit = (model, i, j) => (turns(model, i) === turns(model, j) ? "" : turns(model, i) ? "m" : "1/m");

export function inverseSteps({ model, kernel }, q, qd, qdd) {
  const found = kernel.call("inverse_recursion", { q, qd, qdd });
  const [t, dt, w, collected, tau] = ["t", "dt", "w", "wtilde", "tau"].map((name) => found[name].slice());
  const order = model.bodies.map((_, i) => i);
  const outward = order.map((i) => ({
    body: i,
    way: "outward",
    title: "motion",
    number: "(22)-(24)",
    equation: [
      "t\u1d62 = A t\u209a + p\u1d62 q\u0307\u1d62",
      "t\u0307\u1d62 = A t\u0307\u209a + A\u0307 t\u209a + p\u1d62 q\u0308\u1d62",
      "w\u1d62 = M\u1d62 t\u0307\u1d62 + \u03a9\u1d62 M\u1d62 E t\u1d62",
    ],
    values: [vector("t", TWIST, six(t, i)), vector("t\u0307", RATE, six(dt, i)), vector("w", WRENCH, six(w, i))],
    arrow: { unit: "m/s", vector: Array.from(six(t, i).subarray(3)) },
  }));
  const inward = [...order]
    .reverse()
    .map((i) => ({
      body: i,
      way: "inward",
      title: "forces",
      number: "(25)",
      equation: [
        `w\u0303\u1d62 = w\u1d62${children(model, i).length ? " + \u03a3 A\u1d40 w\u0303\u2096 of the children" : ""}`,
        "\u03c4\u1d62 = p\u1d62\u1d40 w\u0303\u1d62",
      ],
      values: [
        vector("w\u0303", WRENCH, six(collected, i)),
        ...dofs(model, i).map((v) => scalar(`\u03c4 ${model.velocities[v].label}`, model.velocities[v].effort, tau[v])),
      ],
      arrow: { unit: "N", vector: Array.from(six(collected, i).subarray(3)) },
    }));
  return [...outward, ...inward];
}

export function forwardSteps({ model, kernel }, q, qd, tau) {
  const found = kernel.call("forward_recursion", { q, qd, tau });
  const [Mhat, psi, mhat, tauhat, mu, qdd] = ["Mhat", "psi", "mhat", "tauhat", "mu", "qdd"].map((name) =>
    found[name].slice(),
  );
  const order = model.bodies.map((_, i) => i);
  const inward = [...order]
    .reverse()
    .map((i) => ({
      body: i,
      way: "inward",
      title: "elimination",
      number: "(28)-(31)",
      columns: dofs(model, i),
      equation: [
        `M\u0302\u1d62 = M\u1d62` +
          (children(model, i).length
            ? " + \u03a3 A\u1d40 (M\u0302\u2096 \u2212 \u03c8\u0302\u2096 \u03c8\u2096\u1d40) A"
            : ""),
        "m\u0302\u1d62 = p\u1d62\u1d40 M\u0302\u1d62 p\u1d62,  \u03c8\u1d62 = M\u0302\u1d62 p\u1d62 / m\u0302\u1d62",
        "\u03c4\u0302\u1d62 = \u03c4\u1d62 \u2212 p\u1d62\u1d40 w\u1d62",
      ],
      values: [
        { symbol: "M\u0302", unit: ["kg m\u00b2, kg m, kg"], numbers: Mhat.subarray(36 * i, 36 * i + 36) },
        ...dofs(model, i).flatMap((v) => [
          vector("\u03c8", turns(model, v) ? ["1", "1/m"] : ["m", "1"], six(psi, v)),
          scalar("m\u0302", inertiaUnit(model, v), mhat[v]),
          scalar("\u03c4\u0302", model.velocities[v].effort, tauhat[v]),
        ]),
      ],
    }));
  const outward = order.map((i) => ({
    body: i,
    way: "outward",
    title: "accelerations",
    number: "(32)-(33)",
    equation: [
      "q\u0308\u1d62 = \u03c4\u0302\u1d62 / m\u0302\u1d62 \u2212 \u03c8\u1d62\u1d40 A \u03bc\u209a",
      "\u03bc\u1d62 = A \u03bc\u209a + p\u1d62 q\u0308\u1d62",
    ],
    values: [
      vector("\u03bc", RATE, six(mu, i)),
      ...dofs(model, i).map((v) =>
        scalar(`q\u0308 ${model.velocities[v].label}`, `${model.velocities[v].unit.replace("/s", "/s^2")}`, qdd[v]),
      ),
    ],
    arrow: { unit: "m/s^2", vector: Array.from(six(mu, i).subarray(3)) },
  }));
  return [...inward, ...outward];
}

// Which joints move which body: N_l has a block at (i, j) where j is i or one of its ancestors; N_d is diagonal.
export function ancestors(model) {
  return model.bodies.map((_, i) => {
    const out = new Set();
    for (let k = i; k >= 0; k = model.bodies[k].parent) out.add(k);
    return out;
  });
}

// The blocks of N_l and N_d at q in the axes of the ground, those of `denoc` of the library: propagation(i, j) is the
// matrix [6, 6] by which the twist of body j moves body i, [Saha2013] (9b); motions[v] is the column of N_d of velocity
// v, the twist of its body.
export function denocBlocks({ model, kernel }, q) {
  const zeros = new Float64Array(model.nv);
  const poses = kernel.poses(q).slice();
  const above = ancestors(model);
  const motions = model.velocities.map(({ joint }, v) => {
    const unit = zeros.map((_, k) => Number(k === v));
    const p = six(kernel.call("inverse_recursion", { q, qd: unit, qdd: zeros }).t, joint);
    const row = (k) => poses.subarray(16 * joint + 4 * (k % 3), 16 * joint + 4 * (k % 3) + 3);
    return p.map((_, k) => inner(row(k), p.subarray(k < 3 ? 0 : 3)));
  });
  function propagation(i, j) {
    const out = new Float64Array(36);
    if (!above[i].has(j)) return out;
    for (let k = 0; k < 6; k++) out[7 * k] = 1;
    const [x, y, z] = [3, 7, 11].map((k) => poses[16 * j + k] - poses[16 * i + k]); // from O_i to O_j
    [0, -z, y, z, 0, -x, -y, x, 0].forEach((entry, k) => (out[18 + 6 * Math.floor(k / 3) + (k % 3)] = entry));
    return out;
  }
  return { propagation, motions };
}

// N_l [6 n, 6 n] and N_d [6 n, nv] with all their numbers as one CSV table, a row per component of a twist.
export function denocTable(app, q) {
  const { model } = app;
  const { propagation, motions } = denocBlocks(app, q);
  const parts = ["wx", "wy", "wz", "vx", "vy", "vz"];
  const named = (letter) => model.bodies.flatMap((b) => parts.map((x) => `${letter} ${b.name} ${x}`));
  const rows = model.bodies.flatMap((_, i) => {
    const blocks = model.bodies.map((__, j) => propagation(i, j));
    return parts.map((__, a) => [
      ...blocks.flatMap((block) => Array.from(six(block, a))),
      ...model.velocities.map(({ joint }, v) => (joint === i ? motions[v][a] : 0)),
    ]);
  });
  const head = ["", ...named("N_l"), ...model.velocities.map((v) => `N_d ${v.label}`)];
  const quoted = (text) => (/[",]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const lines = [head.map(quoted), ...named("t").map((name, k) => [quoted(name), ...rows[k]])];
  return lines.map((line) => `${line.join(",")}\n`).join("");
}

// Modules of [Saha2013] 3: a chain of bodies ends where the tree branches or ends.
export function modules(model) {
  const out = [];
  model.bodies.forEach(({ parent }, i) => {
    const goesOn = parent >= 0 && children(model, parent).length === 1;
    out[i] = goesOn ? out[parent] : new Set(out).size;
  });
  return out;
}

// U of I = U D U^T by reverse Gaussian elimination of columns nv ... 1, as it stands once the columns from `first` on
// are done.
export function factors(I, nv, done) {
  const A = Float64Array.from(I);
  const U = new Float64Array(nv * nv);
  const D = new Float64Array(nv);
  for (let k = nv - 1; k >= nv - done; k--) {
    D[k] = A[k * nv + k];
    U[k * nv + k] = 1;
    for (let i = 0; i < k; i++) U[i * nv + k] = A[i * nv + k] / D[k];
    for (let i = 0; i < k; i++)
      for (let j = 0; j <= i; j++) A[i * nv + j] = A[j * nv + i] = A[i * nv + j] - U[i * nv + k] * A[j * nv + k];
  }
  return { A, U, D };
}

function vector(symbol, units, numbers) {
  return { symbol, unit: units, numbers };
}

function scalar(symbol, unit, number) {
  return { symbol, unit: [unit], numbers: Float64Array.of(number) };
}
