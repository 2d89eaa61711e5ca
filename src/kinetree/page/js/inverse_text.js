// Inverse dynamics of the page as lines of Python, and as an experiment whose run follows the motion with the same
// torques.

import { loadLine, fileName, ownParameters } from "./names.js";

const SAMPLES = 241;
const list = (x) => `[${Array.from(x, String).join(", ")}]`;

// The reference by the kind of motion: its class in Python, and the arguments by name.
function referenceOf({ kind, q0, q1, duration, points }) {
  const ends = { q0: list(q0), q1: list(q1) };
  const way = q1.map((x, k) => Math.abs(x - q0[k]));
  return {
    cycloid: () => ["Cycloid", { ...ends, duration }],
    cubic: () => ["Polynomial", { ...ends, duration, degree: 3 }],
    quintic: () => ["Polynomial", { ...ends, duration, degree: 5 }],
    trapezoid: () => [
      "Trapezoid",
      {
        ...ends,
        vmax: list(way.map((d) => (1.5 * d) / duration || 1)),
        amax: list(way.map((d) => (4.5 * d) / duration ** 2 || 1)),
      },
    ],
    spline: () => [
      "Table",
      {
        times: list(points.map((p) => p.t)),
        values: `[${points.map((p) => list(p.q)).join(", ")}]`,
        ends: '"clamped"',
      },
    ],
    file: () => null,
  }[kind]();
}

const spanOf = ({ kind, duration, points }) =>
  kind === "spline" ? [points[0]?.t ?? 0, points[points.length - 1]?.t ?? 1] : [0, duration];

export function python(app, settings, frame) {
  const { model, store } = app;
  const { mass, gravity } = settings;
  const [name, values] = referenceOf(settings) || ["Table.from_csv", null];
  const given = values
    ? Object.entries(values)
        .map(([key, x]) => `${key}=${x}`)
        .join(", ")
    : '"motion.csv"';
  const own = ownParameters(model).map((k) => store.get("parameters")[k]);
  const more = own.length ? ", parameters=parameters" : "";
  return [
    "import numpy as np",
    "import kinetree as kt",
    "",
    loadLine(app),
    ...(mass > 0 ? [`arm = kt.with_payload(arm, ${JSON.stringify(frame.name)}, ${mass})`] : []),
    ...(own.length ? [`parameters = ${list(own)}`] : []),
    `motion = kt.${name}(${given})`,
    `t = np.linspace(${values ? spanOf(settings).join(", ") : "motion.times[0], motion.times[-1]"}, ${SAMPLES})`,
    "q, qd, qdd = (np.array(x).T for x in motion(t))",
    `tau = arm.inverse_dynamics(q, qd, ` +
      `qdd${more})${gravity ? "" : ` - arm.gravity_torque(q${more})  # without gravity`}`,
    ...(own.length ? [] : ["print(arm.ledger(q, qd, qdd).by_cause)"]),
    "",
  ].join("\n");
}

// "" where an experiment cannot have the same: a payload, no gravity, or a motion from a file.
export function toml({ model, store, table }, settings) {
  const { kind, q0, mass, gravity, points } = settings;
  const reference = referenceOf(settings);
  if (!reference || mass > 0 || !gravity || (kind === "spline" && (points.length < 2 || points[0].t !== 0))) return "";
  const file = table?.isEdited() ? `${fileName(model.name)}.toml` : model.name;
  const own = ownParameters(model);
  const kinds = { Cycloid: "cycloid", Polynomial: "polynomial", Trapezoid: "trapezoid", Table: "table" };
  return [
    "[experiment]",
    `mechanism = ${JSON.stringify(file)}  # or the path of its file`,
    "",
    "[start]",
    `q = ${list(kind === "spline" ? points[0].q : q0)}`,
    "",
    ...(own.length
      ? [
          "[parameters]",
          ...own.map((k) => `${JSON.stringify(model.parameters[k].name)} = ${store.get("parameters")[k]}`),
          "",
        ]
      : []),
    "[run]",
    `duration = ${spanOf(settings)[1]}`,
    `samples = ${SAMPLES}`,
    "",
    "[control]  # the torques of inverse dynamics along the reference; the gains act on deviations only",
    'kind = "computed_torque"',
    "k = 100.0",
    "c = 20.0",
    "",
    "[control.reference]",
    `kind = "${kinds[reference[0]]}"`,
    ...Object.entries(reference[1]).map(([key, x]) => `${key} = ${x}`),
    "",
    "[output]",
    'plot = ["q", "tau"]',
    'replay = "run.html"',
    "",
  ].join("\n");
}
