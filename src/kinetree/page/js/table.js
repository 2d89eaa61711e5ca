// The table of the mechanism: its numbers as the reader types them, and what follows from them for the model and the
// kernel.
//
//   { form: "standard" | "modified" | "mixed", rows, base, end, gravity, loops }   a row: page/table.py
//
// `base` and `end` are { a, alpha } before the first and after the last row of a chain, or null; `open` marks a chain
// without a frame at its end. Tables are replaced, never changed in place.

import { inForm, outOf, poseOfRow, turn, shift } from "./dh.js";
import { inverse, poseOfAngles, product } from "./poses.js";

export const GEOMETRY = {
  standard: ["theta", "b", "a", "alpha"],
  modified: ["alpha", "a", "theta", "b"],
  placement: ["x", "y", "z", "roll", "pitch", "yaw"],
};
export const ANGLES = new Set(["theta", "alpha", "gamma", "roll", "pitch", "yaw"]);
const FIELDS = [...new Set([...Object.values(GEOMETRY).flat(), "gamma", "epsilon"])];
const SAME = 1e-15; // of a number: rounding of a change of the convention there and back

export function firstTable(data, model) {
  const forms = new Set(data.rows.map((row) => row.form));
  const form = forms.size === 1 && !forms.has("placement") ? [...forms][0] : "mixed";
  return {
    form,
    rows: data.rows,
    base: null,
    end: form === "modified" ? data.tool : null,
    gravity: data.gravity,
    loops: model.loops.map((x) => ({ name: x.name, a: spot(x.pose_a), b: spot(x.pose_b), length: x.length })),
  };
}

const spot = (pose) => [pose[3], pose[7], pose[11]];

// All numbers of a table in a fixed order, and the table with other numbers.
export function numbersOf(t) {
  return [
    ...t.rows.flatMap((row) => [...FIELDS.map((f) => row[f] || 0), row.mass, ...row.com, ...row.inertia]),
    ...[t.base, t.end].flatMap((x) => [x?.a || 0, x?.alpha || 0]),
    ...t.gravity,
    ...t.loops.flatMap((x) => [...x.a, ...x.b, x.length]),
  ];
}

export function withNumbers(t, numbers) {
  let at = 0;
  const next = (count) => numbers.slice(at, (at += count));
  const rows = t.rows.map((row) => {
    const geometry = next(FIELDS.length);
    const kept = FIELDS.flatMap((f, k) => (f in row ? [[f, geometry[k]]] : []));
    return { ...row, ...Object.fromEntries(kept), mass: next(1)[0], com: next(3), inertia: next(6) };
  });
  const [base, end] = [next(2), next(2)].map(([a, alpha]) => ({ a, alpha }));
  return {
    ...t,
    rows,
    base: base.a || base.alpha ? base : null,
    end: t.end ? end : null,
    gravity: next(3),
    loops: t.loops.map((x) => ({ ...x, a: next(3), b: next(3), length: next(1)[0] })),
  };
}

export function sameNumbers(one, other) {
  const [a, b] = [numbersOf(one), numbersOf(other)];
  return a.length === b.length && a.every((x, k) => Math.abs(x - b[k]) <= SAME * Math.max(1, Math.abs(x)));
}

const geometryOf = (row) => FIELDS.map((f) => row[f] || 0).join();

// Write the numbers of a table into the model, whose arrays are changed in place: others hold them. `given` are those
// that it had.
export function applyTable({ model, kernel }, table, first, given) {
  const now = inForm(table, first.form);
  const ends = now.rows.map((row, i) =>
    row.form !== "standard" ? null : geometryOf(row) === geometryOf(first.rows[i]) ? given.ends[i] : poseOfRow(row),
  );
  now.rows.forEach((row, i) => {
    const [old, body] = [first.rows[i], model.bodies[i]];
    const moved = geometryOf(row) !== geometryOf(old);
    if (row.form !== "standard") assign(model.joints[i].placement, moved ? placementOf(row) : given.placements[i]);
    else if (row.parent >= 0) assign(model.joints[i].placement, ends[row.parent]);
    else
      assign(
        model.joints[i].placement,
        now.base ? product(shift(0, now.base.a), turn(0, now.base.alpha)) : given.placements[i],
      );
    const fresh =
      (row.form === "standard" && moved) || String([row.com, row.inertia]) !== String([old.com, old.inertia]);
    const made = !fresh ? given.bodies[i] : row.form === "standard" ? outOf(ends[i], row) : row;
    setBody(kernel, body, row.mass, made);
  });
  model.frames.forEach((frame, k) => {
    const relative = given.frames[k];
    if (relative.end !== undefined && ends[relative.end])
      assign(frame.pose, product(ends[relative.end], relative.pose));
    else if (relative.isTool && now.end) assign(frame.pose, product(shift(0, now.end.a), turn(0, now.end.alpha)));
    else assign(frame.pose, relative.pose);
  });
  model.loops.forEach((loop, k) => {
    for (const side of ["a", "b"])
      [0, 1, 2].forEach((i) => {
        loop[`pose_${side}`][4 * i + 3] = now.loops[k][side][i];
      });
    loop.length = now.loops[k].length;
  });
  assign(model.gravity, now.gravity);
}

export const placementOf = (row) =>
  row.form === "modified" ? poseOfRow(row) : poseOfAngles([row.x, row.y, row.z, row.roll, row.pitch, row.yaw]);

function assign(array, values) {
  for (let k = 0; k < array.length; k++) array[k] = values[k];
}

function setBody(kernel, body, mass, { com, inertia }) {
  body.mass = mass;
  assign(body.com, com);
  assign(body.inertia, inertia);
  const { moments, axes } = principal(kernel, inertia);
  assign(body.moments, moments);
  [0, 1, 2].forEach((i) => {
    body.axes[i] = axes.map((v) => v[i]);
  });
}

// The principal moments of an inertia (xx, yy, zz, xy, yz, zx), the largest first, also negative ones, and their axes:
// singular values of the inertia, with so much added to its diagonal that none is negative.
export function principal(kernel, [xx, yy, zz, xy, yz, zx]) {
  const more = Math.abs(xx) + Math.abs(yy) + Math.abs(zz) + Math.abs(xy) + Math.abs(yz) + Math.abs(zx);
  const { values, right } = kernel.decompose([xx + more, xy, zx, xy, yy + more, yz, zx, yz, zz + more], 3, 3);
  return { moments: values.map((x) => x - more), axes: right };
}

// Poses and bodies as they were given, and which frames follow an end of a row: { end, pose relative to it }.
export function givenNumbers(model, first) {
  const standard = first.form === "standard";
  const frameAt = (name, body) => model.frames.find((f) => f.name === name && f.body === body);
  const ends = first.rows.map((_, i) => (standard ? Float64Array.from(frameAt(`frame_${i + 2}`, i).pose) : null));
  const last = first.rows.length - 1;
  return {
    ends,
    placements: model.joints.map((joint) => Float64Array.from(joint.placement)),
    bodies: model.bodies.map(({ com, inertia }) => ({ com: [...com], inertia: [...inertia] })),
    frames: model.frames.map((f) => {
      const ended =
        standard && f.body >= 0 && (f.name === `frame_${f.body + 2}` || (f.name === "tool" && f.body === last));
      if (ended) return { end: f.body, pose: product(inverse(ends[f.body]), f.pose) };
      return { pose: Float64Array.from(f.pose), isTool: f.name === "tool" && f.body === last };
    }),
  };
}

// The numbers of the model that are inputs of the kernel, in the order of its slots (page/live.py).
export function inputsOf(model, slots) {
  const out = [];
  for (const [list, i, field] of slots) {
    const part = list === "gravity" ? model : model[list][i];
    const pose = list === "frames" ? part.pose : part.placement;
    if (field === "translation") out.push(...spot(pose));
    else if (field === "rotation")
      out.push(pose[0], pose[1], pose[2], pose[4], pose[5], pose[6], pose[8], pose[9], pose[10]);
    else if (field.startsWith("translation_")) out.push(...spot(part[`pose_${field.slice(-1)}`]));
    else out.push(...[part[field]].flat());
  }
  return Float64Array.from(out);
}

// Why a body cannot have these numbers, as one sentence with the remedy; "" if it can.
export function faultOf(kernel, { mass, inertia }) {
  if (mass < 0) return "A mass cannot be negative: type zero or more.";
  const most = Math.max(...inertia.map(Math.abs));
  const [c, b, a] = principal(kernel, inertia).moments;
  if (a < -1e-6 * most || c - a - b > 1e-6 * most) {
    const text = [a, b, c].map((x) => Number(x.toPrecision(4))).join(", ");
    return (
      `No body can have this inertia: its principal moments are ${text}, and none may be negative or ` +
      `exceed the sum of the others. Check the units and the reference point, the center of mass.`
    );
  }
  return "";
}

// What of a row's masses no longer fits a mass or a length that was changed since the table was given: { reasons,
// adapted }, sentences and { com, inertia } of the same shape with the present mass and length; null where the link
// also turned. Both tables are compared in the form of the present one.
export function adaptedMasses(first, now, i) {
  const [old, row] = [inForm(first, now.form).rows[i], now.rows[i]];
  const near = (a, b) => a.every((x, k) => Math.abs(x - b[k]) <= 1e-12 * Math.max(1, Math.abs(x)));
  if (!near([...old.com, ...old.inertia], [...row.com, ...row.inertia])) return { reasons: [], adapted: null };
  const [from, to] = [linkOf(inForm(first, now.form), i), linkOf(now, i)];
  const [before, length] = [from, to].map((v) => (v ? Math.hypot(...v) : 0));
  const isLonger = Math.abs(length - before) > 1e-9 * Math.max(before, length);
  const isHeavier = Math.abs(row.mass - old.mass) > 1e-12 * Math.max(row.mass, old.mass);
  const shown = (x) => Number(x.toPrecision(4));
  const reasons = [
    ...(isHeavier ? [`The mass changed from ${shown(old.mass)} to ${shown(row.mass)} kg`] : []),
    ...(isLonger ? [`the length changed from ${shown(before)} to ${shown(length)} m`] : []),
  ];
  const cosine = isLonger ? from.reduce((s, x, k) => s + x * to[k], 0) / (before * length || NaN) : 1;
  if (!reasons.length || !(cosine > 1 - 1e-9) || (isHeavier && !(old.mass > 0))) return { reasons, adapted: null };
  const scaled = row.inertia.map((x) => (isHeavier ? (x * row.mass) / old.mass : x));
  const adapted = isLonger
    ? stretched(
        { com: row.com, inertia: scaled },
        to.map((x) => x / length),
        length / before,
      )
    : { com: row.com, inertia: scaled };
  return { reasons, adapted };
}

// From the origin of a row's masses along its link, in the frame of these: to its joint in a standard table, otherwise
// to the only joint after it; null without one.
function linkOf(table, i) {
  if (table.rows[i].form === "standard") return spot(inverse(poseOfRow(table.rows[i])));
  const after = table.rows.filter((row) => row.parent === i);
  if (after.length !== 1) return i === table.rows.length - 1 && table.end ? [table.end.a, 0, 0] : null;
  return spot(placementOf(after[0]));
}

// Masses of a body of which everything is s times as far along a direction d, its mass the same. About the center of
// mass, the integral of r r^T is tr(I) E / 2 - I: both of its sides are stretched.
function stretched({ com, inertia: [xx, yy, zz, xy, yz, zx] }, d, s) {
  const S = (v) => {
    const along = (s - 1) * v.reduce((sum, x, k) => sum + x * d[k], 0);
    return v.map((x, k) => x + along * d[k]);
  };
  const half = (xx + yy + zz) / 2;
  const rows = [
    [half - xx, -xy, -zx],
    [-xy, half - yy, -yz],
    [-zx, -yz, half - zz],
  ];
  const once = rows.map(S); // J S, as rows
  const J = [0, 1, 2].map((k) => S(once.map((row) => row[k]))); // S J S, by columns
  const trace = J[0][0] + J[1][1] + J[2][2];
  return { com: S(com), inertia: [trace - J[0][0], trace - J[1][1], trace - J[2][2], -J[0][1], -J[1][2], -J[2][0]] };
}
