// Forward dynamics of the page as lines of Python and as an experiment file: the same times and steps as in the page.

import { springTargets } from "./forward_controls.js";
import { contactLines } from "./ground.js";
import { motionLine } from "./inverse_text.js";
import { fileName, loadLine, ownParameters } from "./names.js";
import { FRAME, stepsPerFrame } from "./recording.js";

const FRAMES = Math.round(1 / FRAME); // per second
const list = (x) => `[${Array.from(x, String).join(", ")}]`;
const TOUCHED =
  "# In the page the drives changed, or a body was pulled, during the motion. Here the present drives act from " +
  "the start.";

// The number of samples, one second of them for a motion that has not begun, and the step, longer by rounding so that
// the last step before a sample is a whole one.
function timesOf(motion, { step }) {
  const count = motion.count > 1 ? motion.count : FRAMES + 1;
  return { count, dt: (FRAME / stepsPerFrame(1e-3 * step)) * (1 + 1e-9) };
}

// Gains and targets of the joints that have a coordinate per velocity, and the names of these joints unless all have.
function held({ model, kernel }, settings) {
  const { stiffness, damping } = settings;
  const kept = (all) => list(all.filter((_, k) => kernel.coordinates[k] >= 0));
  const driven = model.joints.filter(
    (j) => j.v[1] > j.v[0] && kernel.coordinates.slice(j.v[0], j.v[1]).every((c) => c >= 0),
  );
  const moving = model.joints.filter((j) => j.v[1] > j.v[0]);
  return {
    k: kept(stiffness),
    c: kept(damping),
    target: kept(springTargets(settings)),
    joints: driven.length === moving.length ? "" : list(driven.map((j) => JSON.stringify(j.name))),
  };
}

// What a motion on a ground needs in Python; null for others.
const onGround = (app, settings, dt) =>
  (settings.ground && app.kernel.isCarried && contactLines?.(app, settings, dt / (1 + 1e-9))) || null;

export function python(app, motion) {
  const { model, store } = app;
  const settings = store.get("forward");
  const { q, qd } = store.get("start");
  const { k, c, target, joints } = held(app, settings);
  const control = {
    none: "",
    torque: `, control=kt.TorqueFunction(lambda t, q, qd: ${list(settings.torque)})`,
    track: `, control=kt.Sum([kt.FeedForward(motion), kt.PD(${k}, ${c}, motion)])`,
    hold: `, control=kt.PD(${k}, ${c}, kt.Hold(${target})${joints ? `, joints=${joints}` : ""})`,
  }[settings.drive];
  const values = ownParameters(model).map((n) => store.get("parameters")[n]);
  const { count, dt } = timesOf(motion, settings);
  const ground = onGround(app, settings, dt);
  return [
    ...(ground?.lines.some((line) => line.includes("replace(")) ? ["from dataclasses import replace", ""] : []),
    "import numpy as np",
    "import kinetree as kt",
    "",
    loadLine(app),
    ...(motion.touched ? [TOUCHED] : []),
    ...(ground?.lines ?? []),
    `q0 = ${list(q)}`,
    `qd0 = ${list(qd)}`,
    ...(settings.drive === "track" ? [motionLine(app, true)] : []),
    `run = kt.simulate(arm, q0, qd0, times=np.linspace(0.0, ${(count - 1) / FRAMES}, ${count}), dt=${dt}, ` +
      `method="${ground ? "moreau" : "rk4"}"${ground?.option ?? ""}` +
      `${values.length ? `, parameters=${list(values)}` : ""}${control})`,
    "run.plot()",
    "",
  ].join("\n");
}

// "" where an experiment cannot have the same: it has no sum of controllers.
export function toml(app, motion) {
  const { model, store, table } = app;
  if (store.get("forward").drive === "track") return "";
  const file = table?.isEdited() ? `${fileName(model.name)}.toml` : model.name;
  const settings = store.get("forward");
  const { q, qd } = store.get("start");
  const own = ownParameters(model);
  const { count, dt } = timesOf(motion, settings);
  const { k, c, target, joints } = held(app, settings);
  const ground = onGround(app, settings, dt);
  const control = {
    none: [],
    torque: ["[control]", 'kind = "torque"', `tau = ${list(settings.torque)}`, ""],
    hold: [
      "[control]",
      'kind = "pd"',
      `k = ${k}`,
      `c = ${c}`,
      ...(joints ? [`joints = ${joints}`] : []),
      "",
      "[control.reference]",
      'kind = "hold"',
      `q = ${target}`,
      "",
    ],
  }[settings.drive];
  return [
    ...(motion.touched ? [TOUCHED] : []),
    "[experiment]",
    `mechanism = ${JSON.stringify(file)}  # ` +
      (file === model.name ? "or the path of its file" : "numbers were changed: save them by TOML in the mode Build"),
    "",
    "[start]",
    `q = ${list(q)}`,
    `qd = ${list(qd)}`,
    "",
    ...(own.length
      ? [
          "[parameters]",
          ...own.map((n) => `${JSON.stringify(model.parameters[n].name)} = ${store.get("parameters")[n]}`),
          "",
        ]
      : []),
    ...(ground?.option ? ["# In the page a ground carries it: use Python, or tables [[contact]]."] : []),
    "[run]",
    `duration = ${(count - 1) / FRAMES}`,
    `samples = ${count}`,
    `method = "${ground && !ground.option ? "moreau" : "rk4"}"`,
    `dt = ${dt}`,
    "",
    ...control,
    "[output]",
    'plot = ["q", "qd", "energy"]',
    'replay = "run.html"',
    "",
  ].join("\n");
}
