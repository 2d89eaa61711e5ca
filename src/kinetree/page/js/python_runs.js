// Runs in Python, from the mode Simulate: methods that the page does not have, tolerances, contacts, and long times.
// The page stays responsive; the run can be cancelled, and becomes the motion that the page shows.

import { listed, touchingFrames } from "./contact_note.js";
import { numberControl } from "./controls.js";
import { el, section } from "./elements.js";
import { tomlText } from "./model_files.js";
import { Motion } from "./motion.js";
import { RunCloud } from "./run_cloud.js";
import { buildRunForm } from "./run_form.js";
import { server } from "./server.js";

const LARGEST = 1e6; // characters of a run that the document of the tab keeps: some minutes of an arm

// A run as plain data, with its numbers in base64; null if it is too large to be kept.
function packed(run) {
  const text = (x) => {
    const bytes = new Uint8Array(Float64Array.from(x).buffer);
    return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
  };
  const { t, q, qd, columns, ...rest } = run;
  const made = { ...rest, t: text(t), q: text(q), qd: text(qd), poses: undefined };
  made.columns = columns.map((column) => ({ ...column, values: text(column.values) }));
  return JSON.stringify(made).length < LARGEST ? made : null;
}

function unpackedRun(made) {
  const numbers = (text) => new Float64Array(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
  const columns = made.columns.map((column) => ({ ...column, values: numbers(column.values) }));
  return { ...made, t: numbers(made.t), q: numbers(made.q), qd: numbers(made.qd), columns };
}

// The run that the document has, { motion, run }, or null; defines the field `pythonRun` of the store, which holds it.
export function keptRun(app) {
  app.store.define("pythonRun", null, { keep: true });
  const made = app.readLink().pythonRun;
  if (!made) return null;
  app.store.set({ pythonRun: made });
  const run = unpackedRun(made);
  return { motion: Motion.recorded(app.model, run), run };
}

// What the actions take of a panel: the start, the drives, and the numbers that the reader changed.
function taken(app, start, drives) {
  const plain = (table) => Object.fromEntries(Object.entries(table).map(([key, x]) => [key, Array.from(x)]));
  const { at, ...fixed } = drives;
  const { samples } = at ? app.plan.made() : { samples: [] };
  const all = (key) => samples.map((s) => Array.from(s[key]));
  const motion = { t: samples.map((s) => s.t), q: all("q"), qd: all("qd"), qdd: all("qdd") };
  return {
    ...(app.table?.isEdited() ? { model: tomlText(app) } : {}),
    ...plain(start),
    drives: { ...plain(fixed), ...(at ? { motion } : {}) },
    parameters: Object.fromEntries(app.model.parameters.map((p, k) => [p.name, app.store.get("parameters")[k]])),
  };
}

// A cloud of runs in Python, on all cores: a Promise of a RunCloud whose runs are those that are drawn.
export async function cloudInPython(
  app,
  { start, drives, step, seconds, runs, spread, spreadVelocity, frame, onProgress, signal },
) {
  const found = await server.call(
    "batch",
    {
      ...taken(app, start, drives),
      duration: seconds,
      runs,
      spread,
      spread_qd: spreadVelocity,
      dt: step,
      frame: frame.name,
    },
    { onProgress, signal },
  );
  const drawn = found.points.length / (3 * found.samples);
  const bands = (all, count) =>
    Array.from({ length: count }, (_, i) =>
      Array.from({ length: 5 }, (_, j) => all.subarray((5 * i + j) * found.samples, (5 * i + j + 1) * found.samples)),
    );
  const made = new RunCloud(app, {
    start,
    drives,
    step,
    seconds,
    runs: drawn,
    spread,
    spreadVelocity,
    samples: found.samples,
    frame,
  });
  const q = bands(found.q_bands, found.q_bands.length / (5 * found.samples));
  return Object.assign(made, {
    points: Float64Array.from(found.points),
    count: drawn,
    failed: found.failed,
    total: found.runs,
    bands: { point: bands(found.point_bands, 3), q: app.model.coordinates.map((_, i) => q[i] || null), count: drawn },
  });
}

// start(): { q, qd }; drives(): those of the panel; shown(motion, run): the run has ended.
export function buildPythonRuns(app, { start, drives, shown }) {
  const { store } = app;
  let friction = 0.7;
  let form = { values: () => ({}) };
  const feet = app.kernel.isCarried ? [] : touchingFrames(app.model); // otherwise its ground is that of the panel
  const floorNow = () => {
    if (feet.length) return floor.checked ? friction : null;
    const { ground, friction: given } = store.get("forward");
    return ground && app.kernel.ground && app.kernel.ground.friction !== null ? given : null;
  };
  const floor = el("input", { type: "checkbox", checked: true });
  const stands = feet.length
    ? [
        el(
          "label",
          { class: "check", title: "hard contact with Coulomb friction, at these points alone" },
          floor,
          `floor under ${listed(feet)}`,
        ),
        numberControl({
          store,
          label: "friction",
          title: "friction of the floor, Coulomb's coefficient",
          value: friction,
          lower: 0,
          upper: 10,
          slider: false,
          change: (x) => {
            friction = x;
          },
        }),
      ]
    : [];
  let running = null;
  const message = el("p", { class: "hint", role: "status" });
  const bar = el("progress", { max: 1, value: 0, hidden: true, "aria-label": "progress of the run in Python" });
  const options = el("div");
  const go = el("button", {
    type: "button",
    text: "Run in Python",
    title: "simulate by the library, with its methods",
    disabled: true, // until the options are known
    onclick: run,
  });
  const stop = el("button", {
    type: "button",
    text: "Cancel",
    title: "cancel the run",
    hidden: true,
    onclick: () => {
      running?.abort();
      message.textContent = "Cancelling, as soon as the present step of the work has ended ...";
    },
  });

  function busy(on) {
    go.disabled = on;
    stop.hidden = bar.hidden = !on;
  }
  async function run() {
    running = new AbortController();
    bar.value = 0;
    busy(true);
    message.textContent = "Compiling the equations of motion ...";
    const began = performance.now();
    try {
      const found = await server.call(
        "simulate",
        { ...taken(app, start(), drives()), ...form.values(), ...(floorNow() === null ? {} : { floor: floorNow() }) },
        {
          onProgress: (share) => {
            bar.value = share;
            if (!running.signal.aborted) message.textContent = "Running ...";
          },
          signal: running.signal,
        },
      );
      const seconds = ((performance.now() - began) / 1000).toFixed(1);
      shown(Motion.recorded(app.model, found.run), found.run);
      const kept = packed(found.run);
      store.set({ pythonRun: kept });
      const lost = kept ? "" : "; it is too large to be kept through a reload";
      message.textContent = `${found.run.method}: ${found.run.status}, ${seconds} s${lost}`;
    } catch (error) {
      message.textContent = error.name === "AbortError" ? "Cancelled." : error.message;
    } finally {
      busy(false);
    }
  }
  server.call("run_options").then(
    (found) => {
      form = buildRunForm(store, found.options);
      options.replaceChildren(...form.rows);
      go.disabled = false;
    },
    (error) => {
      message.textContent = error.message;
    },
  );
  return section("In Python", options, ...stands, el("div", { class: "buttons" }, go, stop, bar), message);
}
