// Views of a turn of the driving joint: its range in words, curves, bearing forces as arrows, and the same in Python.

import { motionCharts } from "./charts.js";
import { loadLine } from "./names.js";
import { sharedUnit, withUnit } from "./units.js";
import { fromRows, multiply, originOf, turned } from "./vectors.js";

const LONG = 0.25; // of the size of the mechanism: the arrow of a usual bearing force

// The range of a drive, named `label`, as a sentence; `unit` is that of its velocity.
export function rangeText(range, label, unit, units) {
  const say = (x) => withUnit(x, unit.replace("/s", ""), units);
  if (range.kind === "locked") return `${label} is locked: the loops hold it.`;
  const more = range.revolutions > 1 ? `; the mechanism returns after ${range.revolutions} turns` : "";
  if (range.kind === "turns") return `${label} turns fully${more}.`;
  return `${label} ${unit === "m/s" ? "moves" : "rocks"} between ${say(range.low)} and ${say(range.high)}.`;
}

// Curves of a turn: the path of a point, the torque of the drive, bearing forces, motion, and gaps.
export function turnCharts(model, turn, label, point) {
  const { axis, t, count } = turn;
  const [i, j] = widest(turn.path, count);
  /** @type {import("./charts.js").Chart[]} */
  const out = [
    {
      title: "curve",
      unit: "m",
      plane: true,
      axis: { name: "xyz"[i], unit: "m", other: "xyz"[j] },
      series: [{ name: point, t, count, x: turn.path[i], values: turn.path[j] }],
    },
  ];
  if (turn.loaded) {
    out.push({
      title: "drive torque",
      unit: model.velocities[turn.drive].effort,
      axis,
      series: [{ name: label, t, count, values: turn.torque }],
    });
    out.push({
      title: "bearing forces",
      unit: "N",
      axis,
      series: turn.names.map((name, k) => ({ name, t, count, values: turn.forces[k] })),
    });
  }
  out.push(...motionCharts(model, turn).map((chart) => ({ ...chart, axis })));
  out.push({
    title: "gap",
    unit: sharedUnit(model.equations.map((e) => e.unit)),
    axis,
    series: [{ name: "largest gap", t, count, values: turn.gaps }],
  });
  return out;
}

// The two axes of the ground along which a curve is largest.
function widest(curve, count) {
  const span = curve.map((x) => Math.max(...x.subarray(0, count)) - Math.min(...x.subarray(0, count)));
  const least = span.indexOf(Math.min(...span));
  return [0, 1, 2].filter((k) => k !== least);
}

// Forces of parents on children, and of frames a on frames b, at the sample at or before the present time.
export function bearingArrows({ model, store, data }, turn, matrices) {
  const loads = turn.loads[turn.find(store.get("time")).index];
  // The scale is that of most positions: near dead positions forces grow without bound, and their arrows are cut short.
  const sizes = Float64Array.from({ length: turn.count }, (_, k) =>
    Math.max(...turn.forces.map((column) => column[k])),
  ).sort();
  const usual = Math.max(1e-12, sizes[Math.floor(0.75 * (turn.count - 1))]);
  const length = (size) => (LONG * data.scene.size) / Math.max(usual, size / 2.5);
  const force = (i) => loads.subarray(6 * i + 3, 6 * i + 6);
  const color = [0.78, 0.19, 0.16];
  const made = (name, matrix, i) => ({
    name,
    group: "bearings",
    unit: "N",
    origin: originOf(matrix),
    vector: turned(matrix, force(i)),
    length: length(Math.hypot(...force(i))),
    color,
  });
  return [
    ...model.joints.flatMap((joint, i) => (joint.floats ? [] : [made(joint.name, matrices[i], i)])),
    ...model.loops.map((x, k) =>
      made(x.name, x.b < 0 ? fromRows(x.pose_b) : multiply(matrices[x.b], fromRows(x.pose_b)), model.joints.length + k),
    ),
  ];
}

// Lines of Python that compute the same turn.
export function python(app, { drive, velocity }, start) {
  const { model, store, data } = app;
  const changed = model.lengths.some(
    (x) => store.get("parameters")[x.parameter] !== data.first.parameters[x.parameter],
  );
  return [
    "import kinetree as kt",
    "",
    loadLine(app),
    ...(changed ? ["# lengths differ from those of the model: change them in its file"] : []),
    `turn = arm.cycle(${JSON.stringify(model.joints[model.velocities[drive].joint].name)}, speed=${velocity}, ` +
      `start=${start})`,
    `turn.plot(["tau", "reactions", "loop_reactions"], "turn.png")`,
    "",
  ].join("\n");
}
