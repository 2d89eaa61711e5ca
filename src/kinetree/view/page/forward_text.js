// Forward dynamics of the page as lines of Python and as an experiment file.

import { fileName, loadLine, ownParameters } from "./names.js";

const list = (x) => `[${Array.from(x, String).join(", ")}]`;
const duration = (motion) => Math.max(1, Number(motion.end.toFixed(6)));

export function python(app, motion) {
  const { model, kernel, store } = app;
  const { drive, stiffness, damping, torque, target, step } = store.get("forward");
  const { q, qd } = store.get("start");
  const driven = model.joints.filter((j) => kernel.coordinates.slice(j.v[0], j.v[1]).some((c) => c >= 0));
  const every = driven.length === model.joints.length;
  const kept = (all) => all.filter((_, k) => kernel.coordinates[k] >= 0);
  const names = every ? "" : `, joints=[${driven.filter((j) => j.v[1] > j.v[0]).map((j) => JSON.stringify(j.name)).join(", ")}]`;
  const control = {
    none: "",
    torque: `, control=kt.TorqueFunction(lambda t, q, qd: ${list(torque)})`,
    hold: `, control=kt.PD(${list(kept(stiffness))}, ${list(kept(damping))}, kt.Hold(${list(kept(target))})${names})`,
  }[drive];
  const values = ownParameters(model).map((k) => store.get("parameters")[k]);
  const parameters = values.length ? `, parameters=${list(values)}` : "";
  return [
    "import kinetree as kt", "",
    loadLine(app),
    `run = kt.simulate(arm, ${list(q)}, ${list(qd)}, duration=${duration(motion)}, dt=${1e-3 * step}, method="rk4"${parameters}${control})`,
    "run.plot()", "",
  ].join("\n");
}

export function toml({ model, store, table }, motion) {
  const file = table?.isEdited() ? `${fileName(model.name)}.toml` : model.name;
  const { drive, stiffness, damping, target, step } = store.get("forward");
  const { q, qd } = store.get("start");
  const own = ownParameters(model);
  const lines = [
    "[experiment]", `mechanism = ${JSON.stringify(file)}  # ${file === model.name ? "or the path of its file" : "numbers were changed: save them by TOML in the mode Model"}`, "", "[start]", `q = ${list(q)}`, `qd = ${list(qd)}`, "",
    ...(own.length ? ["[parameters]", ...own.map((k) => `${JSON.stringify(model.parameters[k].name)} = ${store.get("parameters")[k]}`), ""] : []),
    "[run]", `duration = ${duration(motion)}`, 'method = "rk4"', `dt = ${1e-3 * step}`, "",
  ];
  if (drive === "hold") lines.push("[control]", 'kind = "pd"', `k = ${list(stiffness)}`, `c = ${list(damping)}`, "", "[control.reference]", 'kind = "hold"', `q = ${list(target)}`, "");
  if (drive === "torque") lines.push("# constant torques have no kind of control in experiment files; see the lines of Python", "");
  return [...lines, "[output]", 'plot = ["q", "qd", "energy"]', 'replay = "run.html"', ""].join("\n");
}
