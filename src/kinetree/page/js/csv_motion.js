// Motions in CSV files: t and one column per joint, with velocities and accelerations if they are known; or t, x, y, z
// and perhaps roll, pitch, yaw of a frame. Numbers are in SI units and radians. Errors are sentences for the reader.

import { framePose, solvePose } from "./inverse_kinematics.js";
import { moved, poseOfAngles } from "./poses.js";

const POSE = ["x", "y", "z", "roll", "pitch", "yaw"];
const LARGEST = 5e6; // characters

// { t, q, qd, qdd } with an array per row; qd and qdd are null without columns. frame: that of a path in space.
export function readMotion(app, text, frame) {
  const { names, rows, lines } = readTable(text, app.model.coordinates);
  const t = rows.map((row) => row[0]);
  t.forEach((x, k) => {
    if (k && !(x > t[k - 1])) throw new Error(`The times must rise: line ${lines[k]} has ${x} after ${t[k - 1]}.`);
  });
  if (t.length < 2) throw new Error("Give two lines of numbers or more.");
  if (names.includes("x")) return { t, q: alongPath(app, names, rows, frame), qd: null, qdd: null };
  const labels = app.model.coordinates.map((c) => c.label);
  const columns = (prefix) => labels.map((label) => names.indexOf(prefix + label));
  let q = columns("").map((at, k) => (at < 0 ? columns("q.")[k] : at));
  // in the order of the joints
  if (q.some((at) => at < 0) && names.length === labels.length + 1) q = labels.map((_, k) => k + 1);
  const missing = labels.filter((_, k) => q[k] < 0);
  if (missing.length)
    throw new Error(`There is no column ${missing[0]}. Give t and ${labels.join(", ")}, or t, x, y, z.`);
  const some = (places) => (places.every((at) => at >= 0) ? rows.map((row) => places.map((at) => row[at])) : null);
  return { t, q: rows.map((row) => q.map((at) => row[at])), qd: some(columns("qd.")), qdd: some(columns("qdd.")) };
}

// The names of the columns of a file without a header: t, the joints, and perhaps their velocities and accelerations.
function usualNames(count, coordinates) {
  const labels = coordinates.map((c) => c.label);
  const all = ["", "qd.", "qdd."].flatMap((prefix) => labels.map((label) => prefix + label));
  const parts = (count - 1) / labels.length;
  if ([1, 2, 3].includes(parts)) return ["t", ...all.slice(0, count - 1)];
  throw new Error(
    `The file has no header and ${count} columns: begin with a line of names, t and ${labels.join(", ")}, ` +
      "or t, x, y, z.",
  );
}

function readTable(text, coordinates) {
  if (text.length > LARGEST) throw new Error("The file is larger than 5 MB.");
  const lines = text
    .split(/\r?\n/)
    .map((line) => line.replace(/#.*/, "").trim())
    .map((line, k) => [line, k + 1])
    .filter(([line]) => line);
  if (!lines.length) throw new Error("The file is empty.");
  const first = lines[0][0].split(",").map((cell) =>
    cell
      .trim()
      .replace(/^"|"$/g, "")
      .replace(/\s*\[.*\]$/, ""),
  );
  const isHeaded = !first.every((cell) => cell !== "" && Number.isFinite(Number(cell)));
  const names = isHeaded ? first : usualNames(first.length, coordinates);
  if (!["t", "time"].includes(names[0]))
    throw new Error(`The first column is ${names[0].slice(0, 40)}; it must be t or time.`);
  const rows = lines.slice(isHeaded ? 1 : 0).map(([line, at]) => {
    const cells = line.split(",").map((cell) => cell.trim());
    if (cells.length !== names.length)
      throw new Error(`Line ${at} has ${cells.length} cells under ${names.length} columns.`);
    return cells.map((cell) => {
      const x = cell === "" ? NaN : Number(cell);
      if (!Number.isFinite(x)) throw new Error(`Line ${at}: "${cell.slice(0, 20)}" is not a number.`);
      return x;
    });
  });
  return { names, rows, lines: lines.slice(isHeaded ? 1 : 0).map(([, at]) => at) };
}

// The joints along a path of a frame, each position from the one before.
function alongPath(app, names, rows, frame) {
  const places = POSE.map((name) => names.indexOf(name));
  if (places.slice(0, 3).some((at) => at < 0)) throw new Error("A path needs the columns x, y and z.");
  const turns = places.slice(3).every((at) => at >= 0);
  let q0 = app.store.get("q");
  return rows.map((row) => {
    const numbers = places.map((at) => (at < 0 ? 0 : row[at]));
    const goal = turns ? poseOfAngles(numbers) : moved(framePose(app.kernel, q0, frame), numbers.slice(0, 3));
    const found = solvePose(app, frame, goal, { weights: turns ? [1, 1, 1, 1, 1, 1] : [0, 0, 0, 1, 1, 1], q0 });
    if (!found.converged)
      throw new Error(
        `At t = ${row[0]} s, ${frame.name} cannot reach its place: ${found.position.toPrecision(3)} m are ` +
          `missing. Move the arm near the start of the path first.`,
      );
    q0 = found.q;
    return Array.from(found.q);
  });
}
