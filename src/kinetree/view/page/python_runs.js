// Runs in Python, from the mode Forward: methods that the page does not have, tolerances, contacts, and long times. The page
// stays responsive; the run can be cancelled, and becomes the motion that the page shows.

import { numberControl } from "./controls.js";
import { el, section } from "./elements.js";
import { tomlText } from "./model_files.js";
import { Motion } from "./motion.js";
import { server } from "./server.js";

const LONGEST = 3600; // [s], as studio/actions/runs.py

// start(): { q, qd }; drives(): those of the panel; shown(motion, run): the run has ended.
export function buildPythonRuns(app, { start, drives, shown }) {
  const { store } = app;
  const settings = { method: "auto", duration: 10, step: 1, rtol: 1e-8 };
  let fixed = new Set();
  let running = null;
  const message = el("p", { class: "hint", role: "status" });
  const bar = el("progress", { max: 1, value: 0, hidden: true, "aria-label": "progress of the run in Python" });
  const number = (label, unit, key, lower, upper) => numberControl({ store, label, unit, value: settings[key], lower, upper, slider: false, change: (x) => { settings[key] = x; } });
  const rows = { duration: number("duration", "s", "duration", 1e-3, LONGEST), step: number("time step", "ms", "step", 1e-3, 1e3), rtol: number("tolerance", "", "rtol", 1e-14, 0.1) };
  const pick = el("select", { "aria-label": "method", onchange: () => { settings.method = pick.value; refresh(); } }, el("option", { value: "auto", text: "auto" }));
  const go = el("button", { type: "button", text: "Run in Python", title: "simulate by the library, with its methods", onclick: run });
  const stop = el("button", { type: "button", text: "Cancel", title: "cancel the run", hidden: true, onclick: () => running?.abort() });

  function refresh() {
    rows.step.hidden = !fixed.has(settings.method);
    rows.rtol.hidden = fixed.has(settings.method);
  }
  function busy(on) {
    go.disabled = on;
    stop.hidden = bar.hidden = !on;
  }
  async function run() {
    running = new AbortController();
    bar.value = 0;
    busy(true);
    message.textContent = "";
    const began = performance.now();
    const { method, duration, step, rtol } = settings;
    const plain = (table) => Object.fromEntries(Object.entries(table).map(([key, x]) => [key, Array.from(x)]));
    try {
      const found = await server.call("simulate", {
        ...(app.table?.isEdited() ? { model: tomlText(app) } : {}), ...plain(start()), duration, method, ...(fixed.has(method) ? { dt: 1e-3 * step } : { rtol }), drives: plain(drives()), parameters: Object.fromEntries(app.model.parameters.map((p, k) => [p.name, store.get("parameters")[k]])),
      }, { onProgress: (share) => { bar.value = share; }, signal: running.signal });
      message.textContent = `${found.run.method}: ${found.run.status}, ${((performance.now() - began) / 1000).toFixed(1)} s`;
      shown(Motion.recorded(app.model, found.run), found.run);
    } catch (error) {
      message.textContent = error.name === "AbortError" ? "Cancelled." : error.message;
    } finally {
      busy(false);
    }
  }
  server.call("methods").then(({ methods }) => {
    fixed = new Set(methods.filter((m) => m.fixed).map((m) => m.name));
    pick.replaceChildren(...methods.map((m) => el("option", { value: m.name, text: m.name, title: m.what })));
    refresh();
  }, (error) => { message.textContent = error.message; });
  refresh();
  return section("In Python", el("label", { class: "control turns" }, el("span", { class: "name", text: "method" }), pick), ...Object.values(rows), el("div", { class: "buttons" }, go, stop, bar), message);
}
