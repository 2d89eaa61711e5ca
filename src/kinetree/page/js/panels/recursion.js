// The recursion: inverse and forward dynamics step by step, body by body, with equations, numbers and block matrices.

import { numberControl } from "../controls.js";
import { choice, el, section } from "../elements.js";
import { ancestors, factors, forwardSteps, inertiaUnit, inverseSteps, modules, ratioUnit } from "../recursion_steps.js";
import { loadLine } from "../names.js";
import { sharedUnit, short } from "../units.js";
import { originOf, turned } from "../vectors.js";

const WAYS = { inverse: inverseSteps, forward: forwardSteps };
const PAUSE = 900; // [ms] between two steps while playing
const LONG = 0.25; // of the size of the mechanism: the longest arrow
const COLORS = { "m/s": [0.16, 0.5, 0.38], N: [0.69, 0.25, 0.24], "m/s^2": [0.16, 0.5, 0.38] };
const LARGEST = 40; // the most rows of a matrix that is drawn

export const panel = {
  name: "Understand",
  key: "w",
  title: "see the recursion: outward and inward, body by body",
  needs: ["poses", "inverse_recursion", "forward_recursion"],
  suits: ({ model }) => model.nv > 0,

  build(host, app) {
    const { model, store } = app;
    store.define("recursion", { way: "inverse", step: 0, speed: 0.5, second: 0.3 }, { link: true });
    const given = app.readLink().recursion;
    if (given) store.set({ recursion: { ...store.get("recursion"), ...given } });
    const settings = () => store.get("recursion");
    const change = (changes) => store.set({ recursion: { ...settings(), ...changes } });
    let steps = [];
    let timer = 0;

    const all = (x) => new Float64Array(model.nv).fill(x);
    function compute() {
      const { way, speed, second } = settings();
      steps = WAYS[way](app, store.get("q"), all(speed), all(second));
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
    const speed = numberControl({
      store,
      label: "velocities",
      title: "velocities of all joints",
      unit: sharedUnit(model.velocities.map((v) => v.unit)),
      value: settings().speed,
      slider: [-2, 2],
      change: (x) => change({ speed: x }),
    });
    const input = (label, unit) =>
      numberControl({
        store,
        label,
        title: `${label} of all joints`,
        unit: sharedUnit(model.velocities.map(unit)),
        value: settings().second,
        slider: [-2, 2],
        change: (x) => change({ second: x }),
      });
    const second = {
      inverse: input("accelerations", (v) => v.unit.replace("/s", "/s^2")),
      forward: input("torques", (v) => v.effort),
    };
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
        speed,
        Object.values(second),
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
      speed.set(settings().speed);
      for (const [name, row] of Object.entries(second)) {
        row.set(settings().second);
        row.hidden = name !== settings().way;
      }
      working.replaceChildren(
        el("h2", { text: `${bodies[step.body].name}: ${step.title}, ${step.way}` }),
        ...step.equation.map((text) => el("p", { class: "equation", text })),
        el("p", { class: "hint", text: `[Saha2013] ${step.number}, in the axes of ${bodies[step.body].name}` }),
        ...step.values.map(quantity),
      );
      blocks.replaceChildren(...matrices(app, step, steps, settings()));
      if (store.get("picked") !== step.body) store.set({ picked: step.body });
      app.stage.refresh();
    }
    store.on(["recursion"], (_, __, names) => {
      if (app.part === part && names.includes("recursion")) compute();
    });
    store.on(["q", "parameters"], () => {
      if (app.part === part) compute();
    });
    store.on(["units"], () => [speed, ...Object.values(second)].forEach((row) => row.refresh()));

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
        const start = `q, qd, x = ${JSON.stringify(Array.from(store.get("q")))}, [${v}] * arm.nv, [${x}] * arm.nv\n`;
        return (
          `import kinetree as kt\n\n${loadLine(app)}\n${start}` +
          (which === "inverse"
            ? "t, dt, w, wtilde, tau = arm.inverse_recursion(q, qd, x)"
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

// N_l and N_d as blocks of bodies, colored by module, or U and D as far as the elimination has come.
function matrices(app, step, steps, { way, step: index }) {
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
    return [
      grid("N_l", n, (i, j) => shade(i, j, above[i].has(j))),
      grid("N_d", n, (i, j) => shade(i, j, i === j)),
      el("p", { class: "hint", text: "Blocks of bodies (rows) and joints (columns), one color per module." }),
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

// kind(i, j): the class of an entry; title(i, j): its number, of entries that have one.
function grid(name, n, kind, title) {
  const cells = Array.from({ length: n * n }, (_, k) => {
    const [i, j] = [Math.floor(k / n), k % n];
    const made = kind(i, j);
    return el("i", { class: made, title: title && made ? title(i, j) : null });
  });
  const box = el("div", { class: "grid", role: "img", "aria-label": `pattern of ${name}` }, cells);
  box.style.setProperty("--n", String(n));
  const [letter, index] = name.split("_");
  return el("figure", { class: "block" }, box, el("figcaption", {}, letter, index ? el("sub", { text: index }) : null));
}
