// Denavit-Hartenberg parameters: elementary motions, poses of rows, and a table in the other convention.
//
// Standard: the pose of frame i+1 in frame i is Rz(theta) Tz(b) Tx(a) Rx(alpha). Modified: the pose of frame i in frame
// i-1 is Rz(gamma) Tz(epsilon) Rx(alpha) Tx(a) Tz(b) Rz(theta). Poses are sixteen numbers row by row.

import { back, forth, place, product } from "./poses.js";

const NOISE = 4 * Number.EPSILON; // of sines and cosines that are -1, 0 or 1 in exact arithmetic
const snap = (x) => [0, 1, -1].find((exact) => Math.abs(x - exact) <= NOISE) ?? x;

export const EYE = Float64Array.from([1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]);

// A rotation about axis k (0, 1, 2), and a displacement along it.
export function turn(k, angle) {
  const [c, s, i, j] = [snap(Math.cos(angle)), snap(Math.sin(angle)), (k + 1) % 3, (k + 2) % 3];
  const T = Float64Array.from(EYE);
  [T[5 * i], T[4 * i + j], T[4 * j + i], T[5 * j]] = [c, -s, s, c];
  return T;
}

export function shift(k, length) {
  const T = Float64Array.from(EYE);
  T[4 * k + 3] = length;
  return T;
}

// The elementary motions of a row in their order: { name, axis, isTurn, value, of(share of it) }.
export function motionsOf(row) {
  const motion = (name, axis, isTurn) => ({
    name,
    axis,
    isTurn,
    value: row[name],
    of: (x) => (isTurn ? turn : shift)(axis, x),
  });
  if (row.form === "standard")
    return [motion("theta", 2, true), motion("b", 2, false), motion("a", 0, false), motion("alpha", 0, true)];
  const branch = row.gamma || row.epsilon ? [motion("gamma", 2, true), motion("epsilon", 2, false)] : [];
  return [...branch, motion("alpha", 0, true), motion("a", 0, false), motion("b", 2, false), motion("theta", 2, true)];
}

export const poseOfRow = (row) => motionsOf(row).reduce((T, m) => product(T, m.of(m.value)), EYE);

// Tx(a) Rx(alpha), the part of a row that the conventions place differently.
const step = ({ a, alpha }) => product(shift(0, a), turn(0, alpha));

// Center of mass and inertia (xx, yy, zz, xy, yz, zx) of a frame in another frame, and the reverse.
export function outOf(T, { com, inertia }) {
  return { com: forth(T, com).map((x, k) => x + place(T)[k]), inertia: congruent(T, inertia, forth) };
}

export function into(T, { com, inertia }) {
  return {
    com: back(
      T,
      com.map((x, k) => x - place(T)[k]),
    ),
    inertia: congruent(T, inertia, back),
  };
}

// R I R^T, by columns: `rotate` is R v or R^T v.
function congruent(T, [xx, yy, zz, xy, yz, zx], rotate) {
  const half = [
    [xx, xy, zx],
    [xy, yy, yz],
    [zx, yz, zz],
  ].map((column) => rotate(T, column)); // (R I)^T, row by row
  const whole = [0, 1, 2].map((i) =>
    rotate(
      T,
      half.map((row) => row[i]),
    ),
  );
  return [whole[0][0], whole[1][1], whole[2][2], whole[0][1], whole[1][2], whole[2][0]];
}

// The same chain in the other convention. The a and alpha of a row belong to the next row of a modified table; those of
// the last one are then those of `end`, and those before the first row are those of `base`, both { a, alpha } or null.
export function inForm(table, form) {
  if (table.form === form) return table;
  const { rows, base, end } = table;
  const none = { a: 0, alpha: 0 };
  if (form === "modified") {
    const made = rows.map((row, i) => {
      const { a, alpha } = i ? rows[i - 1] : base || none;
      return { ...row, ...outOf(step(row), row), form, a, alpha };
    });
    const { a, alpha } = rows[rows.length - 1];
    return { ...table, form, rows: made, base: null, end: table.open ? null : { a, alpha } };
  }
  const made = rows.map((row, i) => {
    const { a, alpha } = rows[i + 1] || end || none;
    return { ...row, ...into(step({ a, alpha }), row), form, a, alpha };
  });
  const { a, alpha } = rows[0];
  return { ...table, form, rows: made, end: null, open: !end, base: a || alpha ? { a, alpha } : null };
}
