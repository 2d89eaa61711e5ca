// Controls of a cloud of runs in forward dynamics.

import { numberControl } from "./controls.js";
import { el, section } from "./elements.js";
import { inSlices } from "./frames.js";
import { movingFrames } from "./inverse_kinematics.js";
import { cloudInPython } from "./python_runs.js";
import { RunCloud } from "./run_cloud.js";
import { server } from "./server.js";

const MOST_RUNS = 20000;
const MOST_IN_PYTHON = 50000; // as studio/actions/runs.py
const MOST_NUMBERS = 3e7; // of all samples of all runs together: some 240 MB

// buildCloud(app, { start, drives, step, friction, shown }) returns
// { element, layer(time), charts(), clear(), stop(), now() }.
export function buildCloud(app, { start, drives, step, friction, shown }) {
  const { model, store, kernel } = app;
  store.define("cloud", { runs: 1000, seconds: 2, spread: 0.02, spreadVelocity: 0 }, { link: true });
  const linked = app.readLink().cloud;
  if (linked) store.set({ cloud: { ...store.get("cloud"), ...linked } });
  const settings = () => store.get("cloud");
  const change = (changes) => store.set({ cloud: { ...settings(), ...changes } });
  let cloud = null;
  let giveUp = () => {};
  const bar = el("progress", { max: 1, value: 0, hidden: true, "aria-label": "computing the cloud" });
  const status = el("p", { class: "hint", role: "status" });
  const number = (label, name, unit, lower, upper, title = label) =>
    numberControl({
      store,
      label,
      title,
      unit,
      value: settings()[name],
      lower,
      upper,
      slider: false,
      change: (x) => change({ [name]: name === "runs" ? Math.round(x) : x }),
    });

  function frameOfCloud() {
    const frames = movingFrames(model);
    return frames.find((f) => f.name === kernel.frame) || frames[frames.length - 1];
  }
  async function runInPython() {
    stop();
    const ended = new AbortController();
    giveUp = () => ended.abort();
    bar.value = 0;
    bar.hidden = false;
    status.textContent = "Computing in Python ...";
    const began = performance.now();
    try {
      const { q, qd } = start();
      cloud = await cloudInPython(app, {
        ...settings(),
        start: { q: Float64Array.from(q), qd: Float64Array.from(qd) },
        drives: drives(),
        step: step(),
        frame: frameOfCloud(),
        signal: ended.signal,
        onProgress: (share) => {
          bar.value = share;
        },
      });
      status.textContent =
        `${cloud.total} runs over ${settings().seconds} s in ` +
        `${((performance.now() - began) / 1000).toFixed(1)} ` +
        `s${cloud.failed ? `; ${cloud.failed} left the finite range` : ""}` +
        (cloud.total > cloud.runs ? `; ${cloud.runs} are drawn` : "");
      shown(cloud);
    } catch (error) {
      status.textContent = error.name === "AbortError" ? "Cancelled." : error.message;
    } finally {
      bar.hidden = true;
    }
  }
  function run() {
    stop();
    const { runs, seconds, spread, spreadVelocity } = settings();
    const frame = frameOfCloud();
    const { q, qd } = start();
    const most = Math.max(2, Math.min(MOST_RUNS, Math.floor(MOST_NUMBERS / (61 * (model.nq + 3)))));
    cloud = new RunCloud(app, {
      start: { q: Float64Array.from(q), qd: Float64Array.from(qd) },
      drives: drives(),
      step: step(),
      friction: friction(),
      seconds,
      runs: Math.min(runs, most),
      spread,
      spreadVelocity,
      frame,
    });
    bar.hidden = false;
    let drawn = 0;
    giveUp = inSlices(cloud.compute(), {
      step: () => {
        bar.value = cloud.count / cloud.runs;
        status.textContent = `${cloud.count} of ${cloud.runs} runs`;
        if (performance.now() - drawn < 250) return;
        drawn = performance.now();
        app.stage.refresh();
      },
      done: () => {
        bar.hidden = true;
        const failed = cloud.failed ? `; ${cloud.failed} left the finite range` : "";
        status.textContent =
          `${cloud.count} runs over ${seconds} ` +
          `s${failed}${runs > most ? `; at most ${most} of this mechanism` : ""}`;
        shown(cloud);
      },
    });
  }
  function stop() {
    giveUp();
    bar.hidden = true;
  }
  function clear() {
    stop();
    cloud = null;
    status.textContent = "";
  }
  const button = (text, title, action) => el("button", { type: "button", text, title, onclick: action });
  return {
    element: section(
      "Cloud of runs",
      number("runs", "runs", "", 2, server ? MOST_IN_PYTHON : MOST_RUNS, "number of runs"),
      number("seconds", "seconds", "s", 0.01, 600, "duration of the runs"),
      number("spread", "spread", "rad, m", 0, 10, "standard deviation of the initial positions"),
      number("of velocities", "spreadVelocity", "rad/s, m/s", 0, 100, "standard deviation of the initial velocities"),
      el(
        "div",
        { class: "buttons" },
        button("Run cloud", "many runs from starts that scatter about this one", run),
        ...(server ? [button("Cloud in Python", "the same on all cores, with up to 50,000 runs", runInPython)] : []),
        button("Clear cloud", "remove the cloud", () => {
          clear();
          shown(null);
        }),
        bar,
      ),
      status,
    ),
    layer: (time) => (cloud?.count ? cloud.lines(time) : []),
    charts: () => (cloud && cloud.count === cloud.runs ? cloud.charts() : []),
    clear,
    stop,
    now: () => cloud,
  };
}
