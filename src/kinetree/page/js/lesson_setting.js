// What a step of a lesson sets in the page: a mode, a state, fields of panels, curves and the view.
//
// Keys are those of SETTINGS in lessons/reading.py. Formulas, such as `q`, are { formula: tree }. `hold` lets springs
// hold the position of `start`. `keep` is the start of a motion that is shown beside the one of `start`, and how far it
// is computed.

import { evaluate } from "./formulas.js";
import { heldAt } from "./forward_controls.js";
import { namesOf } from "./lesson_values.js";

// fields of panels, of which some entries are set
const TABLES = ["forward", "inverse", "kinematics", "recursion", "model", "loops"];
const PATIENCE = 3000; // [ms] of computation ahead of a motion
let latest = 0; // the number of the setting that was applied last

export function applySetting(app, setting) {
  const { store, player, plots, model } = app;
  player.play(false);
  if (app.table?.isEdited()) app.table.change(app.table.first, "lesson");
  if (setting.parameters)
    store.set({
      parameters: Float64Array.from(
        model.parameters,
        (p, k) => setting.parameters[p.name] ?? app.data.first.parameters[k],
      ),
    });
  if (setting.q) app.moveTo(Float64Array.from(evaluate(setting.q.formula, namesOf(app))), { undo: "lesson" });
  if (setting.qd) store.set({ qd: Float64Array.from(evaluate(setting.qd.formula)) });
  store.set({ picked: model.bodies.findIndex((b) => b.name === setting.pick), speed: setting.speed ?? 1 });
  if (setting.mode) store.set({ mode: setting.mode });
  for (const name of TABLES) if (setting[name]) store.set({ [name]: { ...store.get(name), ...plain(setting[name]) } });
  if (setting.hold) holdAt(app, Float64Array.from(evaluate(setting.start.q.formula)));
  if (setting.start) {
    const begin = (start) =>
      store.set({ start: { qd: new Array(model.nv).fill(0), ...plain(start) } }, { by: "lesson" });
    store.set({ ghost: null });
    if (setting.keep) {
      begin({ q: setting.keep.q });
      extend(app, setting.keep.ahead);
      store.set({ ghost: store.get("motion") });
    }
    begin(setting.start);
  }
  if (setting.show) store.set({ show: { ...store.get("show"), ...setting.show } });
  if (setting.ahead) extend(app, setting.ahead);
  const charts = [setting.plot ?? []].flat();
  const wanted = setting.mode === "Loops" ? ["curve", ...charts] : charts;
  const number = (latest += 1);
  whenReady(
    () => number !== latest || wanted.every((title) => plots.charts.some((chart) => chart.title === title)),
    () => {
      if (number !== latest) return; // the reader went on to another step
      charts.forEach((title, k) => plots.choose(title, k > 0));
      plots.refresh();
      player.show();
      look(app, setting);
      if (setting.time !== undefined) player.seek(setting.time);
      if (setting.play) player.play(true);
    },
  );
}

// Do something as soon as a condition holds: some modes compute their curves in slices.
function whenReady(holds, then, frames = 1200) {
  if (holds()) then();
  else if (frames > 0) requestAnimationFrame(() => whenReady(holds, then, frames - 1));
}

// The first view, or from a side, with the whole motion in it.
function look({ stage, store, matrices, model }, { view, ahead, mode }) {
  stage.view.reset();
  if (view) stage.view.look(view);
  if (ahead) stage.fit(posesAlong({ matrices, model }, store.get("motion")));
  else if (mode === "Loops")
    stage.fit(); // with the curve of a point
  else stage.draw();
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

// Poses at two dozen instants of a motion.
function posesAlong({ matrices, model }, motion) {
  const every = Math.max(1, Math.floor(motion.count / 24));
  return Array.from({ length: Math.ceil(motion.count / every) }, (_, i) =>
    matrices(motion.q.subarray(i * every * model.nq, (i * every + 1) * model.nq)),
  );
}

function plain(table) {
  return Object.fromEntries(
    Object.entries(table).map(([name, x]) => [name, x?.formula ? Array.from(evaluate(x.formula)) : x]),
  );
}
