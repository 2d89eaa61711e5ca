// What a step of a lesson sets in the page: a mode, a state, fields of panels, curves and the view.
//
// Keys are those of SETTINGS in lessons/reading.py. `q`, `qd`, and texts inside of tables that begin with "[" are formulas.
// `hold` lets springs hold the position of `start`. `keep` is the start of a motion that is shown beside the one of `start`, and how far it is computed.

import { evaluate } from "./formulas.js";
import { heldAt } from "./forward_controls.js";
import { functionsOf } from "./lesson_values.js";

const TABLES = ["forward", "inverse", "kinematics", "recursion", "model", "loops"]; // fields of panels, of which some entries are set
const PATIENCE = 3000; // [ms] of computation ahead of a motion

export function applySetting(app, setting) {
  const { store, player, plots, stage, model } = app;
  player.play(false);
  if (setting.parameters) store.set({ parameters: Float64Array.from(model.parameters, (p, k) => setting.parameters[p.name] ?? app.data.first.parameters[k]) });
  if (setting.q) app.moveTo(Float64Array.from(evaluate(setting.q, functionsOf(app))), { undo: "lesson" });
  if (setting.qd) store.set({ qd: Float64Array.from(evaluate(setting.qd)) });
  if (setting.mode) store.set({ mode: setting.mode });
  for (const name of TABLES) if (setting[name]) store.set({ [name]: { ...store.get(name), ...plain(setting[name]) } });
  if (setting.hold) holdAt(app, Float64Array.from(evaluate(setting.start.q)));
  if (setting.start) {
    const begin = (start) => store.set({ start: { qd: new Array(model.nv).fill(0), ...plain(start) } }, { by: "lesson" });
    store.set({ ghost: null });
    if (setting.keep) {
      begin({ q: setting.keep.q });
      extend(app, setting.keep.ahead);
      store.set({ ghost: store.get("motion") });
    }
    begin(setting.start);
  }
  if (setting.pick !== undefined) store.set({ picked: model.bodies.findIndex((b) => b.name === setting.pick) });
  if (setting.show) store.set({ show: { ...store.get("show"), ...setting.show } });
  if (setting.ahead) extend(app, setting.ahead);
  for (const [k, title] of [setting.plot ?? []].flat().entries()) plots.choose(title, k > 0);
  plots.refresh();
  player.show();
  stage.view.reset();
  if (setting.view) stage.view.look(setting.view);
  if (setting.ahead) stage.fit(posesAlong(app, store.get("motion")));
  store.set({ speed: setting.speed ?? 1 });
  if (setting.time !== undefined) player.seek(setting.time);
  if (setting.play) player.play(true);
}

// Springs and dampers in all joints, toward a position.
function holdAt({ store, kernel }, q) {
  const { frequency, ratio } = store.get("forward");
  store.set({ forward: { ...store.get("forward"), drive: "hold", ...heldAt(kernel, q, frequency, ratio) } });
}

// Compute the motion up to a time.
function extend({ store }, until) {
  store.get("motion").extend?.(until, { patience: PATIENCE });
}

function posesAlong({ matrices, model }, motion) {
  const every = Math.max(1, Math.floor(motion.count / 24));
  return Array.from({ length: Math.ceil(motion.count / every) }, (_, i) => matrices(motion.q.subarray(i * every * model.nq, (i * every + 1) * model.nq)));
}

function plain(table) {
  return Object.fromEntries(Object.entries(table).map(([name, x]) => [name, typeof x === "string" && x.startsWith("[") ? Array.from(evaluate(x)) : x]));
}
