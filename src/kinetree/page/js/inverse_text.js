// Inverse dynamics of the page as lines of Python, and as an experiment whose run follows the motion with the same
// torques.

import { stationsOf } from "./motion_plan.js";
import { loadLine, fileName, ownParameters } from "./names.js";

const SAMPLES = 241;
const list = (x) => `[${Array.from(x, String).join(", ")}]`;

// The reference of a plan: its class in Python, and arguments by name; null for others, which are tables of samples.
function referenceOf(plan) {
  const { kind, q0, q1, duration, via, qd0, qd1 } = plan;
  const ends = { q0: list(q0), q1: list(q1) };
  const way = q1.map((x, k) => Math.abs(x - q0[k]));
  const isMoving = [...qd0, ...qd1].some((x) => x !== 0);
  const rates = isMoving ? { qd0: list(qd0), qd1: list(qd1) } : {};
  const { times, points } = stationsOf(plan);
  if (kind === "spline" && !isMoving)
    return ["Table", { times: list(times), values: `[${points.map(list).join(", ")}]`, ends: '"clamped"' }];
  if (via.length) return null;
  const known = {
    cycloid: () => ["Cycloid", { ...ends, duration }],
    cubic: () => ["Polynomial", { ...ends, duration, degree: 3, ...rates }],
    quintic: () => ["Polynomial", { ...ends, duration, degree: 5, ...rates }],
    trapezoid: () => [
      "Trapezoid",
      {
        ...ends,
        vmax: list(way.map((d) => (1.5 * d) / duration || 1)),
        amax: list(way.map((d) => (4.5 * d) / duration ** 2 || 1)),
      },
    ],
  };
  return known[kind]?.() ?? null;
}

const EVERY = 6; // samples of a table in the text

// A table of samples that polynomials of degree 5 join.
function tableOf({ samples = [] }) {
  const some = samples.filter((_, k) => k % EVERY === 0);
  const rows = (field) => `[${some.map((s) => list(s[field])).join(",\n    ")}]`;
  const times = list(some.map((s) => s.t));
  return ["Table", { times, values: rows("q"), rates: rows("qd"), accelerations: rows("qdd") }];
}

// The line that makes the planned motion; with `rests`, one that is at rest after its end.
export function motionLine(app, rests = false) {
  const plan = app.plan.settings();
  if (plan.kind === "file") return 'motion = kt.Table.from_csv("motion.csv")';
  const isGoing = rests && plan.qd1.some((x) => x !== 0);
  const [name, values] = (!isGoing && referenceOf(plan)) || tableOf(app.plan.made());
  const given = Object.entries(values).map(([key, x]) => `${key}=${x}`);
  return `motion = kt.${name}(${given.join(", ")})`;
}

// Lines that make the mechanism and the motion; `more` are those in between.
function motionLines(app, plan, more = []) {
  const span = plan.kind === "file" ? "motion.times[0], motion.times[-1]" : `0, ${plan.duration}`;
  return [
    "import numpy as np",
    "import kinetree as kt",
    "",
    loadLine(app),
    ...more,
    motionLine(app),
    `t = np.linspace(${span}, ${SAMPLES})`,
    "q, qd, qdd = (np.array(x).T for x in motion(t))",
  ];
}

// The motion of the mode Motion, with the poses of its frame.
export const pythonOfMotion = (app) =>
  [...motionLines(app, app.plan.settings()), `T = arm.pose(q, ${JSON.stringify(app.plan.frame().name)})`, ""].join(
    "\n",
  );

export function python(app, settings, frame) {
  const { model, store } = app;
  const { mass, gravity } = settings;
  const own = ownParameters(model).map((k) => store.get("parameters")[k]);
  const more = own.length ? ", parameters=parameters" : "";
  return [
    ...motionLines(app, settings, [
      ...(mass > 0 ? [`arm = kt.with_payload(arm, ${JSON.stringify(frame.name)}, ${mass})`] : []),
      ...(own.length ? [`parameters = ${list(own)}`] : []),
    ]),
    `tau = arm.inverse_dynamics(q, qd, ` +
      `qdd${more})${gravity ? "" : ` - arm.gravity_torque(q${more})  # without gravity`}`,
    ...(own.length ? [] : ["print(arm.ledger(q, qd, qdd).by_cause)"]),
    "",
  ].join("\n");
}

// "" where an experiment cannot have the same: a payload, no gravity, or a motion that is a table of samples.
export function toml({ model, store, table }, settings) {
  const { q0, duration, mass, gravity } = settings;
  const reference = referenceOf(settings);
  if (!reference || mass > 0 || !gravity) return "";
  const file = table?.isEdited() ? `${fileName(model.name)}.toml` : model.name;
  const own = ownParameters(model);
  const kinds = { Cycloid: "cycloid", Polynomial: "polynomial", Trapezoid: "trapezoid", Table: "table" };
  return [
    "[experiment]",
    `mechanism = ${JSON.stringify(file)}  # or the path of its file`,
    "",
    "[start]",
    `q = ${list(q0)}`,
    "",
    ...(own.length
      ? [
          "[parameters]",
          ...own.map((k) => `${JSON.stringify(model.parameters[k].name)} = ${store.get("parameters")[k]}`),
          "",
        ]
      : []),
    "[run]",
    `duration = ${duration}`,
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
