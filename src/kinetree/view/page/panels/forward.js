// Forward dynamics in the page: an initial state, drives, and motion in real time or ahead of it. A body is pulled with
// the pointer; a motion may be kept to compare the next one with it.

import { LiveArrows } from "../arrows.js";
import { numberControl } from "../controls.js";
import { choice, el, section } from "../elements.js";
import { shortLabels } from "../names.js";
import { motionCharts } from "../plots.js";
import { Recording } from "../recording.js";
import { onPlane } from "../view.js";
import { within } from "../vectors.js";

const LONGEST = 600; // [s] computed ahead at most
const SWINGS = 9; // [rad/s] the frequency of the whole mass on the spring of the pointer
const DAMPED = 0.35; // its damping ratio

export const panel = {
  name: "Forward",
  key: "f",
  title: "let the mechanism move under gravity, drives and your hand",
  needs: ["poses", "integrate", "time_step", "kinetic_energy", "potential_energy", "twists", "inverse_dynamics"],

  build(host, app) {
    const { model, store, kernel, player } = app;
    const zeros = () => new Array(model.nv).fill(0);
    store.define("forward", {
      drive: "none", frequency: 8, ratio: 0.7, stiffness: zeros(), damping: zeros(), torque: zeros(), target: zeros(), step: 1, ahead: 10,
    }, { undo: true, link: true });
    store.define("start", { q: Array.from(store.get("q")), qd: Array.from(store.get("qd")) }, { undo: true, link: true });
    const readLater = app.readLink();
    if (Object.keys(readLater).length) store.set(readLater);
    let motion = null;
    let pulled = null;
    const arrows = new LiveArrows(app);

    const settings = () => store.get("forward");
    const drives = () => drivesOf(settings());

    function begin() {
      const start = store.get("start");
      const closed = kernel.close(Float64Array.from(start.q));
      motion = new Recording(app, { q: closed.q, qd: Float64Array.from(start.qd), drives, step: 1e-3 * settings().step });
      store.set({ motion, time: 0 }, { by: "player" });
      show();
    }
    function show() {
      app.plots.show(part.charts());
      player.show();
    }
    // Inputs changed: the motion up to now stays, what follows is computed anew.
    function change(changes, undo) {
      store.set({ forward: { ...settings(), ...changes } }, { undo });
    }
    function onChange() {
      if (!motion || store.get("motion") !== motion) return;
      motion.step = 1e-3 * settings().step;
      motion.resume(store.get("time"));
      store.set({ time: motion.end }, { by: "player" });
      app.say("");
      app.plots.refresh();
      player.show();
    }
    function ahead() {
      const until = Math.min(LONGEST, motion.end + settings().ahead);
      const bar = host.querySelector("progress");
      const from = motion.end;
      bar.hidden = false;
      const work = () => {
        if (store.get("motion") !== motion || !motion.extend) { bar.hidden = true; return; }
        motion.extend(until, { patience: 25 });
        bar.value = (motion.end - from) / (until - from);
        app.plots.refresh();
        player.show();
        if (motion.end < until - 1e-6 && motion.extend) requestAnimationFrame(work);
        else bar.hidden = true;
      };
      work();
    }
    function setStart(changes, undo) {
      player.play(false);
      store.set({ start: { ...store.get("start"), ...changes } }, { undo });
      begin();
    }

    const startRows = buildStart(app, setStart);
    const driveRows = buildDrives(app, change);
    host.append(
      section("Start", startRows.element),
      section("Drives", driveRows.element),
      section("Motion",
        el("div", { class: "buttons" },
          button("Restart", "back to the start, and forget the motion (Backspace)", begin),
          button("From here", "begin at the present position and velocities", () => setStart({ q: Array.from(store.get("q")), qd: Array.from(store.get("qd")) }, "start from here")),
          button("At rest here", "begin at the present position, at rest", () => setStart({ q: Array.from(store.get("q")), qd: zeros() }, "start at rest")),
          button("Compare", "keep this motion and begin another over it (c)", compare)),
        el("div", { class: "buttons" },
          button("Compute ahead", "compute the next seconds as fast as possible", ahead), el("progress", { max: 1, value: 0, hidden: true, "aria-label": "computing ahead" })),
        numberControl({ store, label: "seconds ahead", unit: "s", value: settings().ahead, lower: 0.1, upper: LONGEST, slider: false, change: (x) => change({ ahead: x }) }),
        numberControl({ store, label: "time step", unit: "ms", value: settings().step, lower: 0.01, upper: 16, slider: false, change: (x) => change({ step: x }, "time step") })),
      el("p", { class: "hint", text: "Space lets the mechanism move. Drag a body to pull it with a spring." }),
    );
    function compare() {
      player.play(false);
      store.set({ ghost: store.get("ghost") === motion || !motion ? null : motion });
      begin();
    }
    app.keys.add("Backspace", "restart the motion", () => store.get("mode") === panel.name && begin());
    app.keys.add("c", "compare with another motion", () => store.get("mode") === panel.name && compare());
    app.stage.view.grabbers.push((grab) => (store.get("mode") === panel.name ? grabBody(grab) : null));

    // A drag on a body pulls it with a spring and a damper toward the pointer, in the plane that faces the reader.
    function grabBody(grab) {
      const hit = grab.hit();
      if (!hit || hit.body < 0 || !motion?.extend) return null;
      const mass = model.bodies.reduce((sum, b) => sum + b.mass, 0);
      const T = app.matricesNow()[hit.body];
      const begun = () => {
        if (pulled) return;
        pulled = { body: hit.body, point: within(T, hit.point), goal: hit.point, at: hit.point, stiffness: mass * SWINGS ** 2, damping: 2 * DAMPED * mass * SWINGS };
        if (store.get("time") < motion.end - 1e-9) motion.resume(store.get("time"));
        motion.pull = pulled;
        player.play(true);
      };
      return {
        move(now) {
          begun();
          pulled.goal = onPlane(now, hit.point);
          app.stage.refresh();
        },
        end() {
          pulled = null;
          motion.pull = null;
        },
      };
    }

    const part = {
      enter() {
        if (!motion || store.get("motion") !== motion) {
          if (!motion) store.set({ start: keptStart(app, store) });
          else store.set({ start: { q: Array.from(store.get("q")), qd: Array.from(store.get("qd")) } });
          begin();
        }
        show();
      },
      leave() {
        player.play(false);
        store.set({ ghost: null });
      },
      charts: () => motionCharts(model, motion, store.get("ghost")).filter((c) => settings().drive !== "none" || !c.title.startsWith("drive")),
      layer() {
        const acting = { ...drives(), ...(pulled ? { wrenches: motion.wrenches } : {}) };
        const forces = arrows.at(store.get("q"), store.get("qd"), acting);
        if (!pulled) return { arrows: forces };
        return {
          arrows: forces,
          lines: [{ points: new Float32Array([...pulled.at, ...pulled.goal]), color: app.stage.palette.accent, width: 2 }],
          marks: [{ solid: "ball", matrix: ball(pulled.goal, 0.012 * app.data.scene.size), color: app.stage.palette.accent.slice(0, 3) }],
        };
      },
      python: () => python(app, motion),
      toml: () => toml(app, motion),
    };
    store.on(["forward"], () => {
      driveRows.refresh();
      onChange();
      if (store.get("mode") === panel.name) show();
    });
    store.on(["start"], (_, by) => {
      startRows.refresh();
      if (by === "undo" || by === "redo") begin();
    });
    store.on(["units"], () => { startRows.refresh(); driveRows.refresh(); });
    store.on(["parameters"], () => { if (motion && store.get("mode") === panel.name) begin(); });
    store.on(["time"], () => {
      if (store.get("motion") !== motion) return;
      if (motion.ended) { app.say(motion.ended); player.play(false); }
      app.plots.refresh();
    });
    return part;
  },
};

const button = (text, title, action) => el("button", { type: "button", text, title, onclick: action });
const ball = ([x, y, z], r) => new Float32Array([r, 0, 0, 0, 0, r, 0, 0, 0, 0, r, 0, x, y, z, 1]);

// The start of a link, or the present state.
function keptStart(app, store) {
  const given = app.readLink().start;
  return given || { q: Array.from(store.get("q")), qd: Array.from(store.get("qd")) };
}

// One target per velocity: the coordinate of the same direction, or 0.
function targetsOf(kernel, q) {
  return kernel.coordinates.map((k) => (k < 0 ? 0 : q[k]));
}

function drivesOf({ drive, stiffness, damping, torque, target }) {
  if (drive === "torque") return { torque: Float64Array.from(torque) };
  if (drive !== "hold") return {};
  return { stiffness: Float64Array.from(stiffness), damping: Float64Array.from(damping), target: Float64Array.from(target) };
}

// Gains that hold each joint at a position: its inertia there swings at a frequency [rad/s] with a damping ratio.
function heldAt(kernel, q, frequency, ratio) {
  const inertias = kernel.inertias(q);
  const gain = (factor) => Array.from(inertias, (x, k) => (kernel.coordinates[k] < 0 ? 0 : factor * x));
  return { stiffness: gain(frequency ** 2), damping: gain(2 * ratio * frequency), target: targetsOf(kernel, q) };
}

function buildStart(app, setStart) {
  const { model, store, kernel, data } = app;
  const half = (unit) => (unit === "rad" ? Math.PI : data.scene.size);
  const names = shortLabels(model.coordinates.map((c) => c.label));
  const positions = model.coordinates.map((c, k) => (c.unit === "1" ? null : numberControl({
    store, label: names[k], title: c.label, unit: c.unit, value: store.get("start").q[k], lower: c.lower, upper: c.upper,
    slider: [c.lower ?? -half(c.unit), c.upper ?? half(c.unit)],
    change: (x) => {
      const q = Float64Array.from(store.get("start").q);
      q[k] = x;
      const made = kernel.close(q, { held: c.velocity < 0 ? [] : [c.velocity] });
      if (!made.closed) return app.say("The loops do not close here: this position cannot be reached.");
      setStart({ q: Array.from(made.q) }, `start at ${c.label}`);
    },
  })));
  const short = shortLabels(model.velocities.map((v) => v.label));
  const velocities = model.velocities.map((v, k) => numberControl({
    store, label: short[k], title: v.label, unit: v.unit, value: store.get("start").qd[k], slider: v.unit === "rad/s" ? [-10, 10] : [-2, 2],
    change: (x) => {
      const { q, qd } = store.get("start");
      const next = Float64Array.from(qd);
      next[k] = x;
      setStart({ qd: Array.from(kernel.closeVelocities(Float64Array.from(q), next, { held: [k] })) }, `start with ${v.label}`);
    },
  }));
  const rows = el("div", {}, positions.filter(Boolean));
  const tabs = choice(["position", "velocity"], {
    label: "initial state", value: "position", change: (which) => rows.replaceChildren(...(which === "position" ? positions.filter(Boolean) : velocities)),
  });
  const refresh = () => {
    const { q, qd } = store.get("start");
    positions.forEach((row, k) => row && row.set(q[k]));
    velocities.forEach((row, k) => row.set(qd[k]));
  };
  return { element: [tabs, rows], refresh };
}

function buildDrives(app, change) {
  const { model, store, kernel, data } = app;
  const settings = () => store.get("forward");
  const set = (name, k, x) => change({ [name]: settings()[name].map((old, j) => (j === k ? x : old)) }, `${name} of ${model.velocities[k].label}`);
  const names = shortLabels(model.velocities.map((v) => v.label));
  const most = (v) => model.joints[v.joint].effort[0] ?? null;
  const torques = model.velocities.map((v, k) => numberControl({
    store, label: names[k], title: v.label, unit: v.effort, value: settings().torque[k], slider: [-(most(v) ?? 50), most(v) ?? 50], change: (x) => set("torque", k, x),
  }));
  const half = (unit) => (unit === "rad" ? Math.PI : data.scene.size);
  const targets = kernel.coordinates.map((c, k) => (c < 0 ? null : numberControl({
    store, label: names[k], title: model.velocities[k].label, unit: model.coordinates[c].unit, value: settings().target[k],
    slider: [model.coordinates[c].lower ?? -half(model.coordinates[c].unit), model.coordinates[c].upper ?? half(model.coordinates[c].unit)], change: (x) => set("target", k, x),
  })));
  // New gains for the present targets.
  const gains = (changes) => {
    const { frequency, ratio, target } = { ...settings(), ...changes };
    const q = Float64Array.from(store.get("q"));
    target.forEach((x, k) => { if (kernel.coordinates[k] >= 0) q[kernel.coordinates[k]] = x; });
    return { ...changes, ...heldAt(kernel, q, frequency, ratio), target };
  };
  const here = () => heldAt(kernel, store.get("q"), settings().frequency, settings().ratio);
  const masters = [
    numberControl({ store, label: "frequency", title: "of each joint on its spring", unit: "1/s", value: settings().frequency, lower: 0, upper: 200, slider: false, change: (x) => change(gains({ frequency: x }), "frequency") }),
    numberControl({ store, label: "damping ratio", title: "1 returns fastest without overshoot", value: settings().ratio, lower: 0, upper: 10, slider: false, change: (x) => change(gains({ ratio: x }), "damping ratio") }),
  ];
  const hold = button("Hold here", "targets at the present position", () => change(here(), "hold here"));
  const rows = el("div", {});
  const tabs = choice(["none", "torque", "hold"], {
    label: "drives", value: settings().drive, titles: { none: "no drives: free fall", torque: "constant torques and forces", hold: "a spring and a damper in every joint, toward a target" },
    change: (drive) => change({ drive, ...(drive === "hold" && settings().drive !== "hold" ? here() : {}) }, "drives"),
  });
  let shown = null;
  const refresh = () => {
    const { drive, torque, target, frequency, ratio } = settings();
    tabs.set(drive);
    torques.forEach((row, k) => row.set(torque[k]));
    targets.forEach((row, k) => row && row.set(target[k]));
    masters.forEach((row, k) => row.set([frequency, ratio][k]));
    if (shown === drive) return;
    shown = drive;
    rows.replaceChildren(...(drive === "torque" ? torques : drive === "hold" ? [...masters, el("div", { class: "buttons" }, hold), ...targets.filter(Boolean)] : []));
  };
  refresh();
  return { element: [tabs, rows], refresh };
}

const list = (x) => `[${Array.from(x, String).join(", ")}]`;
const duration = (motion) => Math.max(1, Number(motion.end.toFixed(6)));

function python({ model, kernel, store }, motion) {
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
  return [
    "import kinetree as kt", "",
    `arm = kt.load(${JSON.stringify(model.name)})  # or the path of its file`,
    `run = kt.simulate(arm, ${list(q)}, ${list(qd)}, duration=${duration(motion)}, dt=${1e-3 * step}, method="rk4"${control})`,
    "run.plot()", "",
  ].join("\n");
}

function toml({ model, store }, motion) {
  const { drive, stiffness, damping, target, step } = store.get("forward");
  const { q, qd } = store.get("start");
  const lines = [
    "[experiment]", `mechanism = ${JSON.stringify(model.name)}  # or the path of its file`, "", "[start]", `q = ${list(q)}`, `qd = ${list(qd)}`, "",
    "[run]", `duration = ${duration(motion)}`, 'method = "rk4"', `dt = ${1e-3 * step}`, "",
  ];
  if (drive === "hold") lines.push("[control]", 'kind = "pd"', `k = ${list(stiffness)}`, `c = ${list(damping)}`, "", "[control.reference]", 'kind = "hold"', `q = ${list(target)}`, "");
  if (drive === "torque") lines.push("# constant torques have no kind of control in experiment files; see the lines of Python", "");
  return [...lines, "[output]", 'plot = ["q", "qd", "energy"]', 'replay = "run.html"', ""].join("\n");
}
