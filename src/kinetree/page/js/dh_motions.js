// The elementary motions of rows of the DH table: of the picked row one after the other, of the whole chain to it, or
// of all its rows together; with frames on the stage and their matrices beside it.

import { EYE, motionsOf } from "./dh.js";
import {
  buildCard,
  equation,
  inWords,
  matrixTable,
  movedBy,
  rowLayer,
  symbols,
  togetherLayer,
  togetherPoses,
} from "./dh_theatre.js";
import { choice, el, section } from "./elements.js";
import { SYMBOLS, variableOf } from "./model_table.js";
import { inverse, product } from "./poses.js";

const LASTS = 1.2; // [s] one motion
const TOGETHER = 3; // motions that last as long as all rows together
const WORDS = {
  theta: "rotation about z",
  b: "displacement along z",
  a: "displacement along x",
  alpha: "rotation about x",
  gamma: "rotation about z",
  epsilon: "displacement along z",
};

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
  const whole = field ? { ...row, [field]: row[field] + q } : row;
  return { i, row: whole, q, field, from: frameBefore(app, i, row, before) };
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

// The rows of a chain from the ground to row i, each with the gap between the end of the one before and its start; null
// where a row has no motions.
function chainTo(app, i) {
  const rows = [];
  for (let k = i; k >= 0; k = app.store.get("table").rows[k].parent) {
    const found = startOf(app, k);
    if (!found) return null;
    rows.unshift(found);
  }
  return rows.map((row, k) => {
    if (!k) return { ...row, gap: EYE };
    const { row: other, from } = rows[k - 1];
    return { ...row, gap: product(inverse(movedBy(other, from, motionsOf(other).length)), row.from) };
  });
}

// light(i, field) marks a cell of the table, or none with -1.
export function buildMotions(app, light) {
  const { store, stage } = app;
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  let scope = "row";
  let at = 0; // motions done, with the share of the present one
  let run = 0;
  const card = buildCard(stage.host.parentElement);
  const rows = () => (scope === "row" ? [startOf(app, app.row())].filter(Boolean) : chainTo(app, app.row()) || []);
  const lengths = (all) => all.map(({ row }) => motionsOf(row).length);
  const count = (all = rows()) =>
    scope === "together" && all.length ? TOGETHER : lengths(all).reduce((sum, n) => sum + n, 0);
  // The row that moves, and how many of its motions are done.
  function now(all) {
    let done = at;
    for (const [k, n] of lengths(all).entries()) {
      if (done <= n || k === all.length - 1) return { found: all[k], done: Math.min(done, n) };
      done -= n;
    }
    return { found: null, done: 0 };
  }
  const scopes = choice(["row", "chain", "together"], {
    label: "motions of",
    value: scope,
    titles: {
      row: "the motions of the picked row, one after the other",
      chain: "all rows from the ground to the picked one, one motion after the other",
      together: "all rows from the ground to the picked one at once",
    },
    change: (which) => {
      stop();
      scope = which;
      go(0);
    },
  });
  const play = el("button", {
    type: "button",
    title: "the motions one after the other",
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
  const buttons = el("div", {}, scopes, el("div", { class: "buttons" }, play, step, none));
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

  function refresh() {
    const all = rows();
    element.hidden = buttons.hidden = !startOf(app, app.row());
    const { found, done } = now(all);
    play.textContent = run ? "Pause" : "Play";
    const moves = at > 0 && Boolean(found);
    showCard(all, moves ? found : null, done);
    const motion = moves && scope !== "together" ? motionsOf(found.row)[Math.max(0, Math.ceil(done - 1e-9) - 1)] : null;
    light(motion ? found.i : -1, motion?.name);
    if (found) showMatrices(scope === "together" ? all[all.length - 1] : found, done);
  }

  // What moves, in words, and its matrices; at the end of several rows, the pose of the last frame.
  function showCard(all, found, done) {
    if (!found) return card.show("", []);
    const units = store.get("units");
    const names = (list) => list.map(({ i }) => `T${i + 1}`).join(" ");
    if (scope === "together") {
      const poses = togetherPoses(all, at / TOGETHER);
      const words = `${names(all)}: every frame by ${Math.round((100 * at) / TOGETHER)} % of all its motions`;
      return card.show(words, [Array.from(product(inverse(poses[0]), poses[poses.length - 1]))]);
    }
    const motions = motionsOf(found.row);
    const k = Math.max(0, Math.ceil(done - 1e-9) - 1);
    if (at >= count(all) && all.length > 1) {
      const end = movedBy(found.row, found.from, motions.length);
      return card.show(`${names(all)}: from frame 1 to ${found.row.name}`, [
        Array.from(product(inverse(all[0].from), end)),
      ]);
    }
    const motion = motions[k];
    const words = `${found.row.name}: ${inWords(motion, found.i, found.field, units)}`;
    return card.show(words, [symbols(motion), Array.from(motion.of(motion.value * Math.min(1, done - k)))]);
  }

  function showMatrices({ i, row, field }, done) {
    hint.textContent =
      row.form === "standard"
        ? `From frame ${i + 1} to frame ${i + 2}, each motion about the axes that the ones before have moved.`
        : `From the frame before to the frame of ${row.name}, each motion about the axes that the ones before ` +
          "have moved.";
    const units = store.get("units");
    const motions = motionsOf(row);
    const whole = motions.reduce((T, m) => product(T, m.of(m.value)), EYE);
    matrices.replaceChildren(
      ...motions.map((m, k) =>
        el(
          "figure",
          { class: k < done && k >= done - 1 && scope !== "together" ? "now" : "", "data-motion": m.name },
          el("figcaption", { text: `${k + 1}. ${WORDS[m.name]}, ${equation(m, i, field, units)}` }),
          matrixTable(symbols(m)),
          matrixTable(Array.from(m.of(m.value))),
        ),
      ),
      el(
        "figure",
        { "data-motion": "product" },
        el("figcaption", { text: "their product" }),
        ...[wholeSymbols(row), Array.from(whole)].filter(Boolean).map(matrixTable),
      ),
    );
  }

  function layer() {
    const all = at > 0 ? rows() : [];
    if (!all.length) return null;
    if (scope === "together") return togetherLayer(app, all, at / TOGETHER);
    const { found, done } = now(all);
    return rowLayer(app, found, done);
  }
  return {
    buttons,
    element,
    refresh,
    layer,
    // Leave the mode: nothing moves, and the card goes.
    stop() {
      stop();
      card.show("", []);
    },
    get done() {
      return at;
    },
  };
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
