// The recursion: inverse and forward dynamics step by step, body by body, with equations, numbers and block matrices.

import { numberControl } from "../controls.js";
import { choice, download, el, section } from "../elements.js";
import { fileName, loadLine, shortLabels } from "../names.js";
import {
  ancestors,
  denocBlocks,
  denocTable,
  factors,
  forwardSteps,
  inertiaUnit,
  inverseSteps,
  modules,
  ratioUnit,
} from "../recursion_steps.js";
import { sharedUnit, short } from "../units.js";
import { originOf, turned } from "../vectors.js";

const WAYS = { inverse: inverseSteps, forward: forwardSteps };
const PAUSE = 900; // [ms] between two steps while playing
const LONG = 0.25; // of the size of the mechanism: the longest arrow
const COLORS = { "m/s": [0.16, 0.5, 0.38], N: [0.69, 0.25, 0.24], "m/s^2": [0.16, 0.5, 0.38] };
const LARGEST = 40; // the most rows of a matrix that is drawn
const UNDEFINED =
  "NaN is 0/0 here: some m\u0302 is zero, because no body beyond its joint has the mass or inertia that resists it.";

export const panel = {
  name: "Understand",
  key: "w",
  title: "see the recursion: outward and inward, body by body",
  needs: ["poses", "inverse_recursion", "forward_recursion"],
  suits: ({ model }) => model.nv > 0,

  build(host, app) {
    const { model, store } = app;
    store.define("recursion", { way: "inverse", step: 0, speed: 0.5, second: 0.3, block: null }, { link: true });
    const given = app.readLink().recursion;
    if (given) store.set({ recursion: { ...store.get("recursion"), ...given } });
    const settings = () => store.get("recursion");
    const change = (changes) => store.set({ recursion: { ...settings(), ...changes } });
    let steps = [];
    let timer = 0;

    // A field has a number per joint, or one for all of them.
    const perJoint = (x) =>
      Float64Array.from({ length: model.nv }, (_, v) => (typeof x === "number" ? x : (x[v] ?? 0)));
    function compute() {
      const { way, speed, second } = settings();
      steps = WAYS[way](app, store.get("q"), perJoint(speed), perJoint(second));
      show();
    }
    const now = () => steps[Math.min(settings().step, steps.length - 1)];
    const go = (by) => change({ step: Math.min(Math.max(settings().step + by, 0), steps.length - 1) });
    function play(on) {
      clearInterval(timer);
      timer = on ? setInterval(() => (settings().step < steps.length - 1 ? go(1) : play(false)), PAUSE) : 0;
      player.textContent = on ? "Pause" : "Play";
    }

    const way = choice(["inverse", "forward"], {
      label: "which dynamics",
      value: settings().way,
      change: (x) => {
        play(false);
        change({ way: x, step: 0 });
      },
    });
    const names = shortLabels(model.velocities.map((v) => v.label));
    // Rows of a field: one for all joints, and one per joint.
    const rowsOf = (label, field, unit) => {
      const row = (name, title, units, value, changed) =>
        numberControl({ store, label: name, title, unit: units, value, slider: [-2, 2], change: changed });
      const units = model.velocities.map(unit);
      const all = row("all", `${label} of all joints`, sharedUnit(units), 0, (x) => change({ [field]: x }));
      const each = model.velocities.map((v, k) =>
        row(names[k], `${label}: ${v.label}`, units[k], 0, (x) =>
          change({ [field]: Array.from(perJoint(settings()[field]), (old, j) => (j === k ? x : old)) }),
        ),
      );
      const element = el("div", {}, model.nv > 1 ? all : null, each);
      const set = (x) => {
        const numbers = perJoint(x);
        all.set(numbers.every((y) => y === numbers[0]) ? numbers[0] : 0);
        each.forEach((one, k) => one.set(numbers[k]));
      };
      return { element, set, refresh: () => [all, ...each].forEach((one) => one.refresh()) };
    };
    const inputs = {
      velocities: rowsOf("velocity", "speed", (v) => v.unit),
      accelerations: rowsOf("acceleration", "second", (v) => v.unit.replace("/s", "/s^2")),
      torques: rowsOf("torque", "second", (v) => v.effort),
    };
    let input = "velocities"; // those that are shown
    const tabs = el("div");
    const rows = el("div", { class: "rows" });
    function showInputs() {
      const { way: which, speed, second } = settings();
      const offered = ["velocities", which === "inverse" ? "accelerations" : "torques"];
      if (!offered.includes(input)) input = offered[1];
      const pick = (name) => {
        input = name;
        showInputs();
      };
      tabs.replaceChildren(choice(offered, { label: "numbers of the joints", value: input, change: pick }));
      inputs.velocities.set(speed);
      inputs[offered[1]].set(second);
      if (rows.firstChild !== inputs[input].element) rows.replaceChildren(inputs[input].element);
    }
    const player = el("button", {
      type: "button",
      text: "Play",
      title: "step by step",
      onclick: () => {
        if (settings().step === steps.length - 1) change({ step: 0 });
        play(!timer);
      },
    });
    const list = el("ol", { class: "steps", "aria-label": "steps of the recursion" });
    const working = el("div", { class: "working", "aria-live": "polite" });
    const blocks = el("div", { class: "blocks" });
    host.append(
      section(
        "Recursion",
        way,
        tabs,
        rows,
        el(
          "div",
          { class: "buttons" },
          el("button", { type: "button", text: "Back", title: "the step before", onclick: () => go(-1) }),
          player,
          el("button", { type: "button", text: "Next", title: "the next step", onclick: () => go(1) }),
        ),
      ),
      working,
      section("Steps", list),
      section("Matrices", blocks),
    );

    function show() {
      const step = now();
      if (!step) return;
      const { bodies } = model;
      list.replaceChildren(
        ...steps.map((s, k) =>
          el(
            "li",
            {},
            el("button", {
              type: "button",
              text: `${s.way}: ${bodies[s.body].name}`,
              title: s.title,
              "aria-current": k === settings().step ? "step" : null,
              onclick: () => change({ step: k }),
            }),
          ),
        ),
      );
      way.set(settings().way);
      showInputs();
      working.replaceChildren(
        el("h2", { text: `${bodies[step.body].name}: ${step.title}, ${step.way}` }),
        ...step.equation.map((text) => el("p", { class: "equation", text })),
        el("p", { class: "hint", text: `[Saha2013] ${step.number}, in the axes of ${bodies[step.body].name}` }),
        ...step.values.map(quantity),
        ...(step.values.some((x) => !x.numbers.every(Number.isFinite))
          ? [el("p", { class: "hint missing", text: UNDEFINED })]
          : []),
      );
      blocks.replaceChildren(...matrices(app, step, steps, settings(), (block) => change({ block })));
      if (store.get("picked") !== step.body) store.set({ picked: step.body });
      app.stage.refresh();
    }
    store.on(["recursion"], (_, __, names) => {
      if (app.part === part && names.includes("recursion")) compute();
    });
    store.on(["q", "parameters"], () => {
      if (app.part === part) compute();
    });
    store.on(["units"], () => Object.values(inputs).forEach((one) => one.refresh()));

    const part = {
      enter() {
        app.plots.show([]);
        compute();
      },
      leave() {
        play(false);
      },
      layer() {
        const step = now();
        if (!step?.arrow) return {};
        const largest = Math.max(
          1e-12,
          ...steps.filter((s) => s.arrow && s.way === step.way).map((s) => Math.hypot(...s.arrow.vector)),
        );
        const matrix = app.matricesNow()[step.body];
        const vector = turned(matrix, step.arrow.vector);
        const length = (LONG * app.data.scene.size) / largest;
        return {
          arrows: [
            {
              name: step.values[0].symbol,
              group: "values",
              unit: step.arrow.unit,
              origin: originOf(matrix),
              vector,
              length,
              color: COLORS[step.arrow.unit],
            },
          ],
        };
      },
      python: () => {
        const { way: which, speed: v, second: x } = settings();
        const written = (y) => (typeof y === "number" ? `[${y}] * arm.nv` : JSON.stringify(Array.from(perJoint(y))));
        const start = `q, qd, x = ${JSON.stringify(Array.from(store.get("q")))}, ${written(v)}, ${written(x)}\n`;
        return (
          `import kinetree as kt\n\n${loadLine(app)}\n${start}` +
          (which === "inverse"
            ? "t, dt, w, wtilde, tau = arm.inverse_recursion(q, qd, x)\ndenoc = arm.denoc(q, qd)  # N_l, N_d, I"
            : "Mhat, psi, mhat, tauhat, mu, qdd = arm.forward_recursion(q, qd, x)")
        );
      },
    };
    return part;
  },
};

// A quantity with its symbol: a number, six numbers as angular and linear parts, or a matrix of six rows.
function quantity({ symbol, unit, numbers }) {
  const cell = (x) => el("td", { text: short(x), "data-value": String(x) });
  const row = (name, values, u) =>
    el("tr", {}, el("th", { scope: "row", text: name }), [...values].map(cell), el("td", { class: "unit", text: u }));
  const squared = (u) => (u || "").replace("^2", "\u00b2");
  if (numbers.length === 36) {
    const rows = Array.from({ length: 6 }, (_, i) => el("tr", {}, [...numbers.subarray(6 * i, 6 * i + 6)].map(cell)));
    return el(
      "div",
      { class: "quantity" },
      el("p", { class: "symbol", text: `${symbol}  [${squared(unit[0])}]` }),
      el("table", { class: "matrix sixes" }, el("tbody", {}, rows)),
    );
  }
  if (numbers.length === 6)
    return el(
      "table",
      { class: "values quantity" },
      el(
        "tbody",
        {},
        row(`${symbol} \u2220`, numbers.subarray(0, 3), squared(unit[0])),
        row(symbol, numbers.subarray(3), squared(unit[1] || unit[0])),
      ),
    );
  return el("table", { class: "values quantity" }, el("tbody", {}, row(symbol, numbers, squared(unit[0]))));
}

// N_l and N_d as blocks of bodies, colored by module, with the numbers of one of them; or U and D as far as the
// elimination has come. `pick` chooses a block, [body, body].
function matrices(app, step, steps, { way, step: index, block }, pick) {
  const { model, kernel, store } = app;
  const { nv } = model;
  if (way === "inverse" || !kernel.has("inertia_matrix") || nv > LARGEST) {
    const n = model.bodies.length;
    if (n > LARGEST) return [el("p", { class: "hint", text: `${n} bodies: too many to draw their blocks.` })];
    const above = ancestors(model);
    const colors = modules(model).map((k) => `module${k % 6}`);
    const reached = new Set(
      steps
        .slice(0, index + 1)
        .filter((s) => s.way === "outward")
        .map((s) => s.body),
    );
    const shade = (i, j, full) =>
      `${full ? colors[j] : ""}${reached.has(i) ? " done" : ""}${step.body === i ? " now" : ""}`;
    const { parent } = model.bodies[step.body];
    const valid = block?.every((k) => k < n) && above[block[0]].has(block[1]);
    const [i, j] = valid ? block : [step.body, Math.max(parent, 0)];
    return [
      grid(
        "N_l",
        n,
        (a, b) => `${shade(a, b, above[a].has(b))}${a === i && b === j ? " picked" : ""}`,
        null,
        (a, b) => (above[a].has(b) ? pick([a, b]) : undefined),
      ),
      grid(
        "N_d",
        n,
        (a, b) => shade(a, b, a === b),
        null,
        (a, b) => (a === b ? pick([a, a]) : undefined),
      ),
      el("p", {
        class: "hint",
        text: "Blocks of bodies (rows) and joints (columns), one color per module. Click one.",
      }),
      ...blockNumbers(app, i, j, pick),
    ];
  }
  const gone = steps.slice(0, index + 1).flatMap((s) => s.columns || []).length;
  const { A, U, D } = factors(kernel.call("inertia_matrix", { q: store.get("q") }), nv, gone);
  const most = Math.max(...Array.from(A, Math.abs), 1e-300);
  const tone = (x) =>
    x === 0 ? "" : `tone${Math.min(4, Math.max(0, 4 + Math.floor(Math.log10(Math.abs(x) / most))))}`;
  const left = nv - gone;
  return [
    grid("I, what is left", nv, (i, j) => (i < left && j < left ? tone(A[i * nv + j]) : "")),
    grid(
      "U",
      nv,
      (i, j) => (j >= left && U[i * nv + j] !== 0 ? `module0 done${i === j ? " now" : ""}` : ""),
      (i, j) => `${short(U[i * nv + j])} ${ratioUnit(model, i, j)}`,
    ),
    grid(
      "D",
      nv,
      (i, j) => (i === j && i >= left ? "module1 done" : ""),
      (i) => `${short(D[i])} ${inertiaUnit(model, i)}`,
    ),
    el("p", { class: "hint", text: `${gone} of ${nv} columns are eliminated: I = U D U\u1d40.` }),
  ];
}

// The numbers of a block of N_l, of the columns of N_d of its joint, and of their product, with lists to choose it.
function blockNumbers(app, i, j, pick) {
  const { model, store } = app;
  const q = store.get("q");
  const { propagation, motions } = denocBlocks(app, q);
  const above = ancestors(model);
  const list = (label, chosen, offered, change) =>
    el(
      "select",
      { "aria-label": label, onchange: (event) => change(Number(event.target.value)) },
      offered.map((k) => el("option", { value: String(k), text: model.bodies[k].name, selected: k === chosen })),
    );
  const A = propagation(i, j);
  const columns = model.velocities.flatMap((v, k) => (v.joint === j ? [[v, motions[k]]] : []));
  const units = (v) => (v.unit === "rad/s" ? ["1", "m"] : ["1/m", "1"]);
  const moved = (p) => Float64Array.from({ length: 6 }, (_, a) => p.reduce((sum, x, b) => sum + A[6 * a + b] * x, 0));
  return [
    el(
      "p",
      { class: "picks" },
      "twist of ",
      list(
        "body of the block's row",
        i,
        model.bodies.map((_, k) => k),
        (k) => pick([k, above[k].has(j) ? j : k]),
      ),
      " by that of ",
      list("body of the block's column", j, [...above[i]].toReversed(), (k) => pick([i, k])),
    ),
    quantity({ symbol: `N_l: A from ${model.bodies[j].name} to ${model.bodies[i].name}`, unit: ["1, m"], numbers: A }),
    ...columns.flatMap(([v, p]) => [
      el("p", {
        class: "hint",
        text: `p of ${v.label}, a column of N_d; A p, of N = N_l N_d; in the axes of the ground`,
      }),
      quantity({ symbol: "p", unit: units(v), numbers: p }),
      quantity({ symbol: "A p", unit: units(v), numbers: moved(p) }),
    ]),
    el("button", {
      type: "button",
      text: "N_l and N_d (CSV)",
      title: "save all numbers of both matrices at this position",
      onclick: () => download(`${fileName(model.name)}_denoc.csv`, denocTable(app, q), "text/csv"),
    }),
  ];
}

// kind(i, j): the class of an entry; title(i, j): its number, of entries that have one; pick(i, j): what a click does.
function grid(name, n, kind, title, pick) {
  const cells = Array.from({ length: n * n }, (_, k) => {
    const [i, j] = [Math.floor(k / n), k % n];
    const made = kind(i, j);
    return el("i", { class: made, title: title && made ? title(i, j) : null, onclick: pick && (() => pick(i, j)) });
  });
  const box = el("div", { class: "grid", role: "img", "aria-label": `pattern of ${name}` }, cells);
  box.style.setProperty("--n", String(n));
  const [letter, index] = name.split("_");
  return el("figure", { class: "block" }, box, el("figcaption", {}, letter, index ? el("sub", { text: index }) : null));
}
