// Forward dynamics in the page: an initial state, drives, and motion in real time or ahead of it. A body is pulled with
// the pointer; a motion may be kept to compare the next one with it.

import { LiveArrows } from "../arrows.js";
import { motionCharts, recordedCharts } from "../charts.js";
import { buildCloud } from "../cloud_controls.js";
import { contactNote } from "../contact_note.js";
import { numberControl } from "../controls.js";
import { el, section } from "../elements.js";
import { buildDrives, buildStart, drivesOf, heldAt, plannedStart } from "../forward_controls.js";
import { python, toml } from "../forward_text.js";
import { soon } from "../frames.js";
import { buildGround } from "../ground.js";
import { buildPull } from "../pull.js";
import { buildPythonRuns, keptRun } from "../python_runs.js";
import { Recording } from "../recording.js";
import { server } from "../server.js";

const LONGEST = 600; // [s] computed ahead at most
const REDRAWN = 150; // [ms] between pictures while a motion is computed ahead

export const panel = {
  name: "Simulate",
  key: "f",
  title: "let the mechanism move under gravity, drives and your hand",
  needs: ["poses", "integrate", "time_step", "kinetic_energy", "potential_energy", "twists", "inverse_dynamics"],

  build(host, app) {
    const { model, store, kernel, player } = app;
    const zeros = () => new Array(model.nv).fill(0);
    store.define(
      "forward",
      {
        drive: "none",
        frequency: 8,
        ratio: 0.7,
        stiffness: zeros(),
        damping: zeros(),
        torque: zeros(),
        target: zeros(),
        weight: zeros(), // at the targets
        ground: true, // whether the ground carries
        friction: kernel.ground?.friction ?? 0,
        step: 1,
        ahead: 10,
        // a walker stands
        ...(kernel.isCarried && kernel.ground.friction !== null && kernel.ground.armatures.length
          ? { drive: "hold", ...heldAt(kernel, store.get("q"), 8, 0.7) }
          : {}),
      },
      { undo: true, link: true },
    );
    store.define("start", stateOf(store), { undo: true, link: true });
    const linked = app.readLink();
    for (const name of ["forward", "start"]) if (linked[name]) store.set({ [name]: linked[name] });
    let motion = null;
    let isStale = false;
    let kept = null; // the motion to compare with, while other modes are shown
    let computed = null; // { motion, run }: a run in Python, which the page shows instead
    let found = server ? keptRun(app) : null; // that of the document, which is shown at first
    const arrows = new LiveArrows(app);
    const isShown = () => motion && store.get("motion") === motion;
    const pull = buildPull(app, () => (isShown() && motion.extend ? motion : null));

    const settings = () => store.get("forward");
    let acting = { of: null, drives: {} };
    const drives = () => {
      // the same table until the settings change
      if (acting.of !== settings()) acting = { of: settings(), drives: drivesOf(app, settings()) };
      return acting.drives;
    };

    // Where a motion begins that the reader does not choose.
    const origin = () => (settings().drive === "track" && plannedStart(app)) || stateOf(store);

    const friction = () => (settings().ground ? settings().friction : null);

    function begin() {
      const start = store.get("start");
      const closed = kernel.close(Float64Array.from(start.q));
      computed = null;
      if (server && !found) store.set({ pythonRun: null });
      motion = new Recording(app, {
        q: closed.q,
        qd: Float64Array.from(start.qd),
        drives,
        step: 1e-3 * settings().step,
        friction,
      });
      isStale = false;
      cloud.clear();
      store.set({ motion, time: 0 }, { by: "player" });
      show();
    }
    function show() {
      app.plots.show(part.charts());
      player.show();
    }
    // Inputs changed: the motion up to now stays, what follows is computed anew. With a start it begins again.
    function change(changes, undo, start) {
      store.set(
        { forward: { ...settings(), ...changes }, ...(start ? { start } : {}) },
        { undo, by: start && "drives" },
      );
    }
    function onChange() {
      if (!isShown()) return;
      motion.step = 1e-3 * settings().step;
      motion.resume(store.get("time"));
      store.set({ time: motion.end }, { by: "player" });
      app.say("");
      app.plots.refresh();
      player.show();
    }
    function ahead() {
      if (!isShown()) begin();
      computeAhead(app, motion, Math.min(LONGEST, motion.end + settings().ahead), host.querySelector("progress"));
    }
    function setStart(changes, undo) {
      player.play(false);
      store.set({ start: { ...store.get("start"), ...changes } }, { undo });
      begin();
    }

    const startRows = buildStart(app, setStart);
    const driveRows = buildDrives(app, change);
    const cloud = buildCloud(app, {
      start: () => store.get("start"),
      drives,
      step: () => 1e-3 * settings().step,
      friction,
      shown: showCloud,
    });
    const ground = kernel.isCarried ? buildGround(app, change, driveRows.gains) : null;
    const missing = ground ? "" : contactNote(model);
    host.append(
      ...(missing ? [el("p", { class: "hint missing", role: "note", text: missing })] : []),
      section("Start", startRows.element),
      section("Drives", driveRows.element),
      ...(ground ? [section("Ground", ground.element)] : []),
      section(
        "Motion",
        el(
          "div",
          { class: "buttons" },
          button("Restart", "back to the start, and forget the motion (Backspace)", begin),
          button("From here", "begin at the present position and velocities", () =>
            setStart(stateOf(store), "start from here"),
          ),
          button("At rest here", "begin at the present position, at rest", () =>
            setStart({ q: Array.from(store.get("q")), qd: zeros() }, "start at rest"),
          ),
          button("Compare", "keep this motion and begin another over it (c)", compare),
        ),
        el(
          "div",
          { class: "buttons" },
          button("Compute ahead", "compute the next seconds as fast as possible", ahead),
          el("progress", { max: 1, value: 0, hidden: true, "aria-label": "computing ahead" }),
        ),
        numberControl({
          store,
          label: "seconds ahead",
          unit: "s",
          value: settings().ahead,
          lower: 0.1,
          upper: LONGEST,
          slider: false,
          change: (x) => change({ ahead: x }),
        }),
        numberControl({
          store,
          label: "time step",
          unit: "ms",
          value: settings().step,
          lower: 0.01,
          upper: 16,
          slider: false,
          change: (x) => change({ step: x }, "time step"),
        }),
      ),
      cloud.element,
      el("p", { class: "hint", text: "Space lets the mechanism move. Drag a body to pull it with a spring." }),
      ...(server ? [buildPythonRuns(app, { start: () => store.get("start"), drives, shown: showRun })] : []),
    );
    // The motion from the same start runs along with the cloud, and gives the player its time.
    function showCloud(made) {
      if (made && motion.extend) motion.extend(made.seconds, { patience: 1000 });
      show();
      if (made) app.plots.choose(cloud.charts()[0]?.title || app.plots.chosen[0]);
    }
    function showRun(recorded, run) {
      player.play(false);
      computed = { motion: recorded, run };
      store.set({ motion: recorded, time: recorded.start, mode: panel.name });
      show();
    }
    function compare() {
      player.play(false);
      store.set({ ghost: store.get("ghost") === motion || !motion ? null : motion });
      begin();
    }
    app.keys.add("Backspace", "restart the motion", () => store.get("mode") === panel.name && begin());
    app.keys.add("c", "compare with another motion", () => store.get("mode") === panel.name && compare());
    app.stage.view.grabbers.push((grab) => (store.get("mode") === panel.name ? pull.grab(grab) : null));

    const part = {
      enter() {
        if (kept) store.set({ ghost: kept });
        if (computed && store.get("motion") === computed.motion) return show();
        if (isStale) begin();
        else if (!isShown()) {
          store.set({ start: (!motion && app.readLink().start) || origin() });
          begin();
        }
        if (found) showRun(found.motion, found.run);
        found = null;
        show();
      },
      leave() {
        player.play(false);
        cloud.stop();
        kept = store.get("ghost");
        store.set({ ghost: null });
      },
      charts: () => [
        ...(computed && store.get("motion") === computed.motion
          ? recordedCharts(computed.run)
          : motionCharts(model, motion, store.get("ghost"))
        ).filter((c) => settings().drive !== "none" || !c.title.startsWith("drive")),
        ...cloud.charts(),
      ],
      layer() {
        const all = { ...drives(), ...(pull.active() ? { wrenches: motion.wrenches } : {}) };
        const { lines, marks, arrows: pulls } = pull.layer(arrows.perNewton);
        return {
          arrows: [...arrows.at(store.get("q"), store.get("qd"), all, isShown() ? motion : null), ...pulls],
          lines: [...cloud.layer(store.get("time")), ...lines],
          marks,
        };
      },
      cloud: () => cloud.now(),
      // A motion that was pulled or driven by hand cannot be computed again: its present state is what is kept of it.
      document: () => (isShown() && motion.touched ? { t: "0", fields: { start: stateOf(store) } } : null),
      python: () => python(app, motion),
      toml: () => toml(app, motion),
    };
    store.on(["forward"], () => {
      driveRows.refresh();
      ground?.refresh();
      onChange();
      if (store.get("mode") === panel.name) show();
    });
    store.on(["start"], (_, by) => {
      startRows.refresh();
      if (by) begin(); // undo, redo, a lesson: not the panel itself
    });
    store.on(["units"], () => {
      startRows.refresh();
      driveRows.refresh();
    });
    store.on(["inverse", "motionFile", "parameters"], (_, __, names) => {
      if (!names.includes("parameters") && settings().drive !== "track") return;
      acting.of = null;
      if (!names.includes("parameters")) store.set({ start: origin() });
      ground?.refresh();
      if (motion && store.get("mode") === panel.name) begin();
      else isStale = Boolean(motion); // numbers were changed in another mode
    });
    store.on(["time", "playing"], () => {
      if (!isShown()) return;
      if (motion.ended) {
        app.say(motion.ended);
        player.play(false);
      }
      app.plots.refresh();
    });
    return part;
  },
};

const stateOf = (store) => ({ q: Array.from(store.get("q")), qd: Array.from(store.get("qd")) });
const button = (text, title, action) => el("button", { type: "button", text, title, onclick: action });

// Extend a motion as fast as possible, with pictures in between, while it is the one that is shown.
function computeAhead(app, motion, until, bar) {
  const from = motion.end;
  let drawn = 0;
  bar.hidden = false;
  const work = () => {
    if (app.store.get("motion") !== motion || !motion.extend) {
      bar.hidden = true;
      return;
    }
    motion.extend(until, { patience: 20 });
    const goes = motion.end < until - 1e-6 && Boolean(motion.extend);
    if (!goes || performance.now() - drawn > REDRAWN) {
      // pictures of long motions take their time
      drawn = performance.now();
      bar.value = (motion.end - from) / (until - from);
      app.plots.refresh();
      app.player.show();
    }
    if (goes) soon(work);
    else bar.hidden = true;
  };
  work();
}
