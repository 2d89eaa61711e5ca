// The elementary motions of a row of the DH table, one after the other, with frames on the stage and their matrices
// beside it.

import { EYE, motionsOf } from "./dh.js";
import { el, section } from "./elements.js";
import { SYMBOLS, variableOf } from "./model_table.js";
import { product } from "./poses.js";
import { axisLines } from "./stage_items.js";
import { short, shownUnit } from "./units.js";
import { ballMatrix, fromRows, originOf, rodMatrix, scale, add } from "./vectors.js";

const LASTS = 1.2; // [s] one motion
const WORDS = {
  theta: "rotation about z",
  b: "displacement along z",
  a: "displacement along x",
  alpha: "rotation about x",
  gamma: "rotation about z",
  epsilon: "displacement along z",
};
const COLORS = [
  [0.8, 0.2, 0.15],
  [0.15, 0.6, 0.2],
  [0.15, 0.35, 0.85],
];

// The row with the coordinate of its joint added, and the frame from which its motions start.
export function startOf(app, i) {
  const { store, model } = app;
  const row = store.get("table").rows[i];
  if (row.form === "placement" || row.placed) return null;
  const field = variableOf(row);
  const q = field ? store.get("q")[model.joints[i].q[0]] : 0;
  // a chain of fixed joints has no functions
  const poses = app.kernel ? app.kernel.poses(store.get("q")) : app.data.first.poses;
  const before = row.parent < 0 ? EYE : poses.slice(16 * row.parent, 16 * row.parent + 16);
  return { row: field ? { ...row, [field]: row[field] + q } : row, q, field, from: frameBefore(app, i, row, before) };
}

// Frame i of a standard row is where its joint stands on the body before; frame i-1 of a modified row is the frame of
// that body. A body of the other convention has its frame elsewhere on the axis of its joint: by b and theta of its own
// row.
function frameBefore({ table, model, store }, i, row, before) {
  const given = table.first.form;
  if (row.form === "standard" && given === "standard") return product(before, model.joints[i].placement);
  if (row.form === "modified" && given !== "standard") return before;
  const rows = store.get("table").rows;
  const own = (k) =>
    motionsOf(rows[k])
      .filter((m) => m.name === "theta" || m.name === "b")
      .reduce((T, m) => product(T, m.of(m.value)), EYE);
  const near = (part) =>
    motionsOf({ ...row, ...part, theta: 0, b: 0 }).reduce((T, m) => product(T, m.of(m.value)), EYE);
  // given as a standard table
  if (row.form === "modified") return row.parent < 0 ? before : product(before, own(row.parent));
  if (row.parent < 0) return product(before, near(store.get("table").base || { a: 0, alpha: 0 }));
  return product(before, near(rows[row.parent]));
}

export function buildMotions(app) {
  const { store, stage } = app;
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  let at = 0; // motions done, with the share of the present one
  let run = 0;
  const count = () => (now() ? motionsOf(now().row).length : 0);
  const now = () => startOf(app, app.row());
  const play = el("button", {
    type: "button",
    title: "the motions of the row one after the other",
    onclick: () => (run ? stop() : begin()),
  });
  const step = el("button", {
    type: "button",
    text: "Step",
    title: "the next motion",
    onclick: () => {
      stop();
      go(at >= count() ? 1 : Math.floor(at + 1e-9) + 1);
    },
  });
  const none = el("button", {
    type: "button",
    text: "Clear",
    title: "no frames of motions",
    onclick: () => {
      stop();
      go(0);
    },
  });
  const matrices = el("div", { class: "motions" });
  const hint = el("p", { class: "hint" });
  const buttons = el("div", { class: "buttons" }, play, step, none);
  const element = section("Matrices of the row", hint, matrices);

  function go(to) {
    at = Math.max(0, Math.min(to, count()));
    stage.refresh();
    refresh();
  }
  function begin() {
    if (at >= count()) at = 0;
    const token = (run = performance.now());
    let before = token;
    const frame = (time) => {
      if (run !== token) return;
      if (calm.matches) {
        // without motion: one picture per step
        if (time - before >= 1000 * LASTS) {
          before = time;
          go(Math.floor(at + 1e-9) + 1);
        }
      } else {
        go(at + Math.max(0, time - before) / (1000 * LASTS));
        before = time;
      }
      if (at >= count()) stop();
      else requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
    refresh();
  }
  function stop() {
    run = 0;
    refresh();
  }

  // The pose after the motions that are done.
  function moving({ row, from }, done = at) {
    return motionsOf(row).reduce((T, m, k) => product(T, m.of(m.value * Math.max(0, Math.min(1, done - k)))), from);
  }

  function refresh() {
    const found = now();
    element.hidden = buttons.hidden = !found;
    if (!found) return;
    const { row } = found;
    play.textContent = run ? "Pause" : "Play";
    hint.textContent =
      row.form === "standard"
        ? `From frame ${app.row() + 1} to frame ${app.row() + 2}, each motion about the axes that the ones ` +
          `before have moved.`
        : `From the frame before to the frame of ${row.name}, each motion about the axes that the ones before ` +
          `have moved.`;
    const units = store.get("units");
    const motions = motionsOf(row);
    const whole = motions.reduce((T, m) => product(T, m.of(m.value)), EYE);
    matrices.replaceChildren(
      ...motions.map((m, k) => {
        const { unit, factor } = shownUnit(m.isTurn ? "rad" : "m", units);
        const sum = m.name === found.field ? `${SYMBOLS[m.name]} + q` : SYMBOLS[m.name];
        return el(
          "figure",
          { class: k < at && k >= at - 1 ? "now" : "", "data-motion": m.name },
          el("figcaption", { text: `${k + 1}. ${WORDS[m.name]}, ${sum} = ${short(m.value * factor)} ${unit}` }),
          matrixTable(symbols(m)),
          matrixTable(m.of(m.value)),
        );
      }),
      el(
        "figure",
        { "data-motion": "product" },
        el("figcaption", { text: "their product" }),
        ...[wholeSymbols(row), whole].filter(Boolean).map(matrixTable),
      ),
    );
  }

  function layer() {
    const found = at > 0 ? now() : null;
    if (!found) return null;
    const { size } = stage.scene;
    const [from, to] = [fromRows(found.from, 0), fromRows(moving(found), 0)];
    const ends = motionsOf(found.row).map((_, k) => originOf(fromRows(moving(found, Math.min(at, k + 1)), 0)));
    const path = [originOf(from), ...ends].flat();
    const marks = [0, 1, 2].map((k) => {
      const tip = add(originOf(to), scale(0.16 * size, [to[4 * k], to[4 * k + 1], to[4 * k + 2]]));
      return { solid: "rod", matrix: rodMatrix(originOf(to), tip, 0.005 * size), color: COLORS[k] };
    });
    const r = 0.009 * size;
    marks.push({ solid: "ball", matrix: ballMatrix(originOf(to), r), color: stage.palette.accent.slice(0, 3) });
    const lines = [
      ...axisLines([from], 0.16 * size),
      { points: new Float32Array(path), strip: true, color: stage.palette.accent, width: 2 },
    ];
    const labels = ["x", "y", "z"].map((text, k) => ({
      text,
      at: add(originOf(to), scale(0.18 * size, [to[4 * k], to[4 * k + 1], to[4 * k + 2]])),
    }));
    return { marks, lines, labels };
  }
  return {
    buttons,
    element,
    refresh,
    layer,
    stop,
    get done() {
      return at;
    },
  };
}

// The matrix of an elementary motion in symbols.
function symbols({ name, axis, isTurn }) {
  const text = SYMBOLS[name];
  const out = Array.from(EYE, String);
  if (!isTurn) out[4 * axis + 3] = text;
  else {
    const [i, j] = [(axis + 1) % 3, (axis + 2) % 3];
    [out[5 * i], out[4 * i + j], out[4 * j + i], out[5 * j]] = [`c${text}`, `\u2212s${text}`, `s${text}`, `c${text}`];
  }
  return out;
}

function wholeSymbols(row) {
  const [t, p] = [SYMBOLS.theta, SYMBOLS.alpha];
  const m = "\u2212";
  if (row.form === "standard")
    return [
      `c${t}`,
      `${m}s${t}c${p}`,
      `s${t}s${p}`,
      `a c${t}`,
      `s${t}`,
      `c${t}c${p}`,
      `${m}c${t}s${p}`,
      `a s${t}`,
      "0",
      `s${p}`,
      `c${p}`,
      "b",
      "0",
      "0",
      "0",
      "1",
    ];
  if (row.gamma || row.epsilon) return null;
  return [
    `c${t}`,
    `${m}s${t}`,
    "0",
    "a",
    `s${t}c${p}`,
    `c${t}c${p}`,
    `${m}s${p}`,
    `${m}b s${p}`,
    `s${t}s${p}`,
    `c${t}s${p}`,
    `c${p}`,
    `b c${p}`,
    "0",
    "0",
    "0",
    "1",
  ];
}

function matrixTable(entries) {
  const typed = typeof entries[0] === "number";
  const text = (x) => (!typed ? x : Math.abs(x - Math.round(x)) < 5e-4 ? String(Math.round(x) + 0) : x.toFixed(3));
  return el(
    "table",
    { class: "matrix four", "aria-label": typed ? "matrix in numbers" : "matrix in symbols" },
    el(
      "tbody",
      {},
      [0, 1, 2, 3].map((r) =>
        el(
          "tr",
          {},
          [0, 1, 2, 3].map((c) =>
            el("td", { text: text(entries[4 * r + c]), "data-value": typed ? String(entries[4 * r + c]) : null }),
          ),
        ),
      ),
    ),
  );
}
