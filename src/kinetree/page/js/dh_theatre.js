// Motions of DH parameters on the stage: frames on their way, arcs and dimension lines with their values, and a card
// with the motion in words and its matrix in symbols and in numbers.

import { EYE, motionsOf } from "./dh.js";
import { el } from "./elements.js";
import { SYMBOLS } from "./model_table.js";
import { product } from "./poses.js";
import { axisLines } from "./stage_items.js";
import { neat, shownUnit } from "./units.js";
import { add, ballMatrix, fromRows, originOf, rodMatrix, scale } from "./vectors.js";

const AXES = 0.16; // of the size of the mechanism: the axes of a frame, and of the one before
const [ARC, APART, TIP] = [0.12, 0.05, 0.025]; // of the size: radius of arcs, distance of dimension lines, their heads
const COLORS = [
  [0.8, 0.2, 0.15],
  [0.15, 0.6, 0.2],
  [0.15, 0.35, 0.85],
];
const NAMES = "xyz";
const FADED = 0.3; // of their color: bodies behind the motions

// The pose after the motions of a row that are done: a number of them, with the share of the last one.
export const movedBy = (row, from, done) =>
  motionsOf(row).reduce((T, m, k) => product(T, m.of(m.value * Math.max(0, Math.min(1, done - k)))), from);

// "theta2 + q2 = 30 deg" of a motion of row i; `field` is the one to which the coordinate of the joint is added.
export function equation({ name, value, isTurn }, i, field, units) {
  const { unit, factor } = shownUnit(isTurn ? "rad" : "m", units);
  const symbol = `${SYMBOLS[name]}${i + 1}`;
  return `${symbol}${name === field ? ` + q${i + 1}` : ""} = ${neat(value * factor)} ${unit}`;
}

export const inWords = (motion, i, field, units) =>
  `${motion.isTurn ? "rotate about" : "move along"} ${NAMES[motion.axis]} by ${equation(motion, i, field, units)}`;

// The size of what is drawn: that of the mechanism, or more where it is far away.
const sizeOf = ({ scene, view }) => Math.max(scene.size, 0.4 * view.distance);
const axis = (m, k) => [m[4 * k], m[4 * k + 1], m[4 * k + 2]];

// A frame with thick axes and their names.
function frameOf({ stage }, m, length = AXES) {
  const size = sizeOf(stage);
  const tip = (k, far) => add(originOf(m), scale(far * length * size, axis(m, k)));
  const rod = (k) => ({ solid: "rod", matrix: rodMatrix(originOf(m), tip(k, 1), 0.005 * size), color: COLORS[k] });
  const ball = { matrix: ballMatrix(originOf(m), 0.009 * size), color: stage.palette.accent.slice(0, 3) };
  return {
    marks: [...[0, 1, 2].map(rod), { solid: "ball", ...ball }],
    labels: [0, 1, 2].map((k) => ({ text: NAMES[k], at: tip(k, 1.13) })),
  };
}

// The arc or the dimension line of a motion that starts at a pose, and its value beside it.
function measure({ stage }, motion, before, share, text, strong) {
  const size = sizeOf(stage);
  const m = fromRows(before, 0);
  const at = originOf(m);
  const far = motion.value * share;
  const color = strong ? stage.palette.accent : [...stage.palette.accent.slice(0, 3), 0.45];
  const width = strong ? 2.5 : 1.2;
  const line = (points, strip = true) => ({ points: new Float32Array(points.flat()), strip, color, width });
  const cone = (to, along) => {
    const base = add(to, scale(-TIP * size, along));
    return { solid: "cone", matrix: rodMatrix(base, to, 0.4 * TIP * size), color: color.slice(0, 3) };
  };
  if (motion.isTurn) {
    // from x about z, and from z about x, as the angles are defined
    const [u, v] = motion.axis === 2 ? [axis(m, 0), axis(m, 1)] : [axis(m, 2), scale(-1, axis(m, 1))];
    const r = ARC * size;
    const on = (angle, long = r) => add(at, add(scale(long * Math.cos(angle), u), scale(long * Math.sin(angle), v)));
    const parts = Math.max(2, Math.ceil(Math.abs(far) / 0.06));
    const arc = Array.from({ length: parts + 1 }, (_, k) => on((far * k) / parts));
    const along = scale(Math.sign(far), add(scale(-Math.sin(far), u), scale(Math.cos(far), v)));
    return {
      over: [line(arc), line([at, on(0, 1.2 * r), at, on(far, 1.2 * r)], false)],
      marks: strong && Math.abs(far) > 0.2 ? [cone(on(far), along)] : [],
      labels: [{ text, at: on(far / 2, 1.25 * r), strong }],
    };
  }
  const along = axis(m, motion.axis);
  const aside = scale(APART * size, axis(m, motion.axis === 2 ? 0 : 2));
  const end = add(at, scale(far, along));
  const [a, b] = [add(at, aside), add(end, aside)];
  return {
    over: [line([a, b]), line([at, add(at, scale(1.2, aside)), end, add(end, scale(1.2, aside))], false)],
    marks: strong && Math.abs(far) > 2 * TIP * size ? [cone(b, scale(Math.sign(far), along))] : [],
    labels: [{ text, at: scale(0.5, add(a, b)), strong }],
  };
}

// A layer before which the bodies fade.
const joined = (parts) =>
  Object.fromEntries([
    ["faded", FADED],
    ...["over", "marks", "labels"].map((name) => [name, parts.flatMap((part) => part[name] ?? [])]),
  ]);

// A row on its way: { i, row, from, field }, so many of its motions done. Others than the last one are drawn thin.
export function rowLayer(app, { i, row, from, field }, done) {
  const { stage, store } = app;
  const motions = motionsOf(row);
  const now = Math.ceil(done - 1e-9) - 1;
  const measures = motions.slice(0, now + 1).map((motion, k) => {
    const share = Math.min(1, done - k);
    return measure(
      app,
      motion,
      movedBy(row, from, k),
      share,
      equation(motion, i, field, store.get("units")),
      k === now,
    );
  });
  const start = fromRows(from, 0);
  const ends = motions.map((_, k) => originOf(fromRows(movedBy(row, from, Math.min(done, k + 1)), 0)));
  const way = new Float32Array([originOf(start), ...ends].flat());
  const path = { points: way, strip: true, color: stage.palette.accent, width: 2 };
  return joined([
    frameOf(app, fromRows(movedBy(row, from, done), 0)),
    { labels: measures.toReversed().flatMap((part) => part.labels) },
    ...measures.map(({ over, marks }) => ({ over, marks })),
    { over: [...axisLines([start], AXES * sizeOf(stage)), path] },
  ]);
}

// All rows at once, each with the same share of all its motions: frames one behind the other, and lines between them.
export function togetherLayer(app, rows, share) {
  const { stage } = app;
  const poses = togetherPoses(rows, share);
  const points = new Float32Array(poses.flatMap((T) => originOf(fromRows(T, 0))));
  const frames = poses.slice(1).map((T) => frameOf(app, fromRows(T, 0), 0.7 * AXES));
  return joined([
    ...frames.map(({ marks }, k) => {
      const at = originOf(fromRows(poses[k + 1], 0));
      return { marks, labels: [{ text: rows[k].row.name, at, strong: k === frames.length - 1 }] };
    }),
    { over: [...axisLines([fromRows(poses[0], 0)], AXES * sizeOf(stage))] },
    { over: [{ points, strip: true, color: stage.palette.accent, width: 2.5 }] },
  ]);
}

// The frame of the first row, and those after each row; a row starts at the end of the one before as it does in truth.
export function togetherPoses(rows, share) {
  const out = [rows[0].from];
  for (const { row, gap } of rows) {
    const start = product(out[out.length - 1], gap);
    out.push(motionsOf(row).reduce((T, m) => product(T, m.of(share * m.value)), start));
  }
  return out;
}

// The card over the stage: words, and matrices [{ entries, of }] in symbols or numbers.
export function buildCard(host) {
  const text = el("p", { role: "status" });
  const matrices = el("div", { class: "matrices" });
  const card = el("div", { class: "theatre motions", hidden: true }, text, matrices);
  host.append(card);
  return {
    show(words, tables) {
      card.hidden = !words;
      if (text.textContent !== words) text.textContent = words;
      matrices.replaceChildren(...tables.filter(Boolean).map(matrixTable));
    },
    remove: () => card.remove(),
  };
}

// The matrix of an elementary motion in symbols.
export function symbols({ name, axis: k, isTurn }) {
  const text = SYMBOLS[name];
  const out = Array.from(EYE, String);
  if (!isTurn) out[4 * k + 3] = text;
  else {
    const [i, j] = [(k + 1) % 3, (k + 2) % 3];
    [out[5 * i], out[4 * i + j], out[4 * j + i], out[5 * j]] = [`c${text}`, `\u2212s${text}`, `s${text}`, `c${text}`];
  }
  return out;
}

export function matrixTable(entries) {
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
