// Inverse dynamics: a motion of the joints by a law, a spline or a file; its torques by cause, peaks, limits and
// reactions.

import { byUnit, motionCharts } from "../charts.js";
import { numberControl } from "../controls.js";
import { readMotion } from "../csv_motion.js";
import { choice, el, section, toggle } from "../elements.js";
import { movingFrames } from "../inverse_kinematics.js";
import { python, toml } from "../inverse_text.js";
import { between, motionOf, spline, tabulated } from "../joint_motions.js";
import { shortLabels } from "../names.js";
import { CAUSES, reactionsAt, torquesAt } from "../torques.js";
import { coordinatesText, short } from "../units.js";

const KINDS = ["cycloid", "cubic", "quintic", "trapezoid", "spline", "file"];
const TITLES = {
  cycloid: "accelerations begin and end at zero",
  cubic: "a polynomial of degree 3, at rest at both ends",
  quintic: "a polynomial of degree 5",
  trapezoid: "a third of the time each: faster, constant, slower",
  spline: "a cubic spline through positions",
  file: "a CSV file of joints, or of a path in space",
};
const LONG = 0.3; // of the size of the mechanism: the arrow of the largest reaction

export const panel = {
  name: "Torques",
  key: "i",
  title: "the torques of a motion, by cause",
  needs: ["poses", "twists", "inverse_dynamics", "gravity_torque", "reactions", "twist_rates"],
  suits: (app) => !reasonOf(app),
  reason: reasonOf,

  build(host, app) {
    const { model, store, player } = app;
    const frames = movingFrames(model);
    const here = () => Array.from(store.get("q"));
    store.define(
      "inverse",
      {
        kind: "cycloid",
        q0: here(),
        q1: here().map((x, k) =>
          inLimits(model.coordinates[k], x + (model.coordinates[k].unit === "rad" ? Math.PI / 4 : 0.1)),
        ),
        duration: 2,
        points: [],
        gravity: true,
        mass: 0,
        frame: app.kernel.frame,
        joint: 0,
      },
      { undo: true, link: true },
    );
    store.define("motionFile", null, { undo: true, keep: true }); // the rows of a file (csv_motion.js)
    const given = app.readLink();
    if (given.inverse) store.set({ inverse: { ...store.get("inverse"), ...given.inverse } });
    if (given.motionFile) store.set({ motionFile: given.motionFile });
    const settings = () => store.get("inverse");
    const change = (changes, undo, by = "") => store.set({ inverse: { ...settings(), ...changes } }, { undo, by });
    const frame = () => frames.find((f) => f.name === settings().frame) || frames[frames.length - 1];
    const load = () => ({ gravity: settings().gravity, mass: settings().mass, frame: frame() });
    let made = null; // { motion, samples, torques, largest }

    function samplesNow() {
      const { kind, q0, q1, duration, points } = settings();
      if (kind === "file") return store.get("motionFile") ? tabulated(store.get("motionFile")) : null;
      if (kind === "spline")
        return points.length > 1
          ? spline(
              points.map((p) => p.t),
              points.map((p) => p.q),
            )
          : null;
      return between(kind, q0, q1, duration);
    }
    // The pose stays, unless the motion is to be shown at an end of it that was changed: "start" or "end".
    function compute(shown = "") {
      const samples = samplesNow();
      player.play(false);
      if (!samples) {
        made = null;
        store.set({ motion: null, time: 0 });
      } else {
        const torques = samples.map((s) => torquesAt(app, s, load()));
        const forces = samples.map((s) => reactionsAt(app, s, load()));
        const largest = Math.max(1e-12, ...forces.flatMap((all) => all.map(({ vector }) => Math.hypot(...vector))));
        made = { motion: motionOf(model, samples), samples, torques, largest };
        const time = shown ? made.motion[shown] : Math.min(store.get("time"), made.motion.end);
        store.set({ motion: made.motion, time }, { by: shown ? "" : "offered" });
      }
      show();
    }
    function show() {
      peaks.replaceChildren(
        ...(made
          ? [peakTable(app, made)]
          : [
              el("p", {
                class: "hint",
                text:
                  settings().kind === "file"
                    ? "Choose a CSV file with columns t and the joints."
                    : "Add two positions or more.",
              }),
            ]),
      );
      app.plots.show(part.charts());
      player.show();
    }

    const rows = buildMotion(app, {
      settings,
      change,
      load: (motion) => store.set({ motionFile: motion }, { undo: "file of a motion" }),
      frame,
      here,
    });
    const gravity = toggle("gravity", {
      title: "whether gravity acts",
      on: settings().gravity,
      change: (on) => change({ gravity: on }, "gravity"),
    });
    const mass = numberControl({
      store,
      label: "payload",
      title: "payload",
      unit: "kg",
      value: settings().mass,
      lower: 0,
      upper: 1e6,
      slider: false,
      change: (x) => change({ mass: x }, "payload"),
    });
    const pick = el(
      "select",
      {
        "aria-label": "frame of payload and path",
        title: "where the payload is, and what moves along a path",
        onchange: () => change({ frame: pick.value }, "payload"),
      },
      frames.map((f) => el("option", { value: f.name, text: f.name })),
    );
    const names = shortLabels(model.velocities.map((v) => v.label));
    const joint = el(
      "select",
      {
        "aria-label": "joint of the causes",
        title: "the joint whose torque is shown by cause",
        onchange: () => change({ joint: Number(joint.value) }),
      },
      names.map((name, k) => el("option", { value: String(k), text: name })),
    );
    const peaks = el("div", {});
    host.append(
      section("Motion", rows.element),
      section(
        "Loads",
        el("div", { class: "buttons" }, gravity),
        mass,
        el("label", { class: "control plain" }, el("span", { class: "name", text: "at" }), pick),
      ),
      section(
        "Torques",
        el("label", { class: "control plain" }, el("span", { class: "name", text: "causes of" }), joint),
        peaks,
      ),
      el("p", {
        class: "hint",
        text:
          "Space plays the motion. Reactions are forces of joints on their bodies. CSV above the curves " +
          "saves all numbers.",
      }),
    );

    const part = {
      enter() {
        if (!made) store.set({ show: { ...store.get("show"), reactions: true } });
        refresh();
        compute();
      },
      leave() {
        player.play(false);
      },
      charts: () => (made ? chartsOf(app, made, settings().joint) : []),
      layer() {
        if (!made || !store.get("show").reactions) return null;
        const there = made.motion.state(store.get("time")).q;
        if (there.some((x, k) => x !== store.get("q")[k])) return null; // the pose is not one of the motion
        if (!settings().gravity && model.parameters.length) return null; // weights may depend on free parameters
        const now = stateAt(made, store.get("time"));
        const all = reactionsAt(app, now, load());
        return {
          arrows: all.map(({ origin, vector }, i) => ({
            name: model.joints[i].name,
            group: "reactions",
            unit: "N",
            origin,
            vector,
            length: (LONG * app.data.scene.size) / made.largest,
          })),
        };
      },
      python: () => python(app, settings(), frame()),
      toml: () => toml(app, settings()),
    };
    function refresh() {
      rows.refresh();
      gravity.set(settings().gravity);
      mass.set(settings().mass);
      pick.value = frame().name;
      joint.value = String(settings().joint);
    }
    store.on(["inverse", "motionFile"], (_, by) => {
      refresh();
      if (store.get("mode") === panel.name) compute(["start", "end"].includes(by) ? by : "");
    });
    store.on(["parameters"], () => {
      if (store.get("mode") === panel.name) compute();
    });
    store.on(["units"], () => {
      rows.refresh();
      if (store.get("mode") === panel.name) show();
    });
    return part;
  },
};

// Why a mechanism has no inverse dynamics here; "" if it has.
function reasonOf({ model }) {
  const trees = "Torques is for trees with a drive in every joint.";
  const instead = "see Simulate, with torques or hold.";
  if (model.loops.length)
    return `${trees} This mechanism has loops: the mode Loops has the torque of its drive and all bearing forces.`;
  if (model.joints.some((joint, i) => joint.floats && model.bodies[i].parent < 0))
    return `${trees} This mechanism floats, and nothing drives its base: ${instead}`;
  if (model.closed) return `${trees} Joints of this mechanism are coupled, by gears or as mimic joints: ${instead}`;
  if (model.nq !== model.nv || model.coordinates.some((c, k) => c.velocity !== k))
    return `Torques is for joints with one coordinate per velocity, unlike those with quaternions: ${instead}`;
  return "";
}

const inLimits = (c, x) => Math.min(c.upper ?? Infinity, Math.max(c.lower ?? -Infinity, x));

// The state of the samples at a time, with accelerations on straight lines between them.
function stateAt({ motion, samples }, time) {
  const { index, share } = motion.find(time);
  const next = samples[Math.min(index + 1, samples.length - 1)];
  return { ...motion.state(time), qdd: samples[index].qdd.map((x, k) => x + share * (next.qdd[k] - x)) };
}

function buildMotion(app, { settings, change, load, frame, here }) {
  const { model, store, data } = app;
  const half = (unit) => (unit === "rad" ? Math.PI : data.scene.size);
  const labels = model.coordinates.map((c) => c.label);
  const names = shortLabels(labels);
  const controls = (field) =>
    model.coordinates.map((c, k) =>
      numberControl({
        store,
        label: names[k],
        title: `${field === "q0" ? "from" : "to"} ${c.label}`,
        unit: c.unit,
        value: settings()[field][k],
        lower: c.lower,
        upper: c.upper,
        slider: [c.lower ?? -half(c.unit), c.upper ?? half(c.unit)],
        change: (x) =>
          change(
            { [field]: settings()[field].map((old, j) => (j === k ? x : old)) },
            `${field} of ${c.label}`,
            field === "q0" ? "start" : "end",
          ),
      }),
    );
  const ends = { from: controls("q0"), to: controls("q1") };
  const rows = el("div", {});
  const tabs = choice(["from", "to"], {
    label: "end of the motion",
    value: "to",
    change: (which) => rows.replaceChildren(...ends[which]),
  });
  rows.replaceChildren(...ends.to);
  const duration = numberControl({
    store,
    label: "duration",
    unit: "s",
    value: settings().duration,
    lower: 1e-3,
    upper: 1e4,
    slider: false,
    change: (x) => change({ duration: x }, "duration"),
  });
  const button = (text, title, action) => el("button", { type: "button", text, title, onclick: action });
  const byLaw = el(
    "div",
    {},
    tabs,
    rows,
    el(
      "div",
      { class: "buttons" },
      button("From here", "begin at the present position", () =>
        change({ q0: here() }, "start of the motion", "start"),
      ),
      button("To here", "end at the present position", () => change({ q1: here() }, "end of the motion", "end")),
    ),
    duration,
  );
  const list = el("div", {});
  const last = () => settings().points[settings().points.length - 1]?.t ?? -1;
  const byPoints = el(
    "div",
    {},
    list,
    el(
      "div",
      { class: "buttons" },
      button("Add present position", "one second after the last one", () =>
        change({ points: [...settings().points, { t: last() + 1, q: here() }] }, "add a position", "end"),
      ),
      button("Remove last", "remove the last position", () =>
        change({ points: settings().points.slice(0, -1) }, "remove a position"),
      ),
    ),
  );
  const message = el("p", { class: "error", role: "alert", hidden: true });
  const file = el("input", { type: "file", accept: ".csv,text/csv", "aria-label": "CSV file of a motion" });
  file.addEventListener("change", async () => {
    message.hidden = true;
    try {
      const text = await file.files[0].text();
      file.value = ""; // the same file may be chosen again
      load(readMotion(app, text, frame()));
    } catch (error) {
      message.textContent = error.message;
      message.hidden = false;
    }
  });
  const byFile = el(
    "div",
    {},
    file,
    message,
    el("p", {
      class: "hint",
      text:
        `Columns t, ${labels.slice(0, 2).join(", ")}, ... and perhaps qd.${labels[0]}, qdd.${labels[0]}, ...; ` +
        "or t, x, y, z and perhaps roll, pitch, yaw. Radians and SI units.",
    }),
  );
  const body = el("div", {});
  const kinds = choice(KINDS, {
    label: "kind of motion",
    value: settings().kind,
    titles: TITLES,
    change: (kind) => change({ kind }, "kind of motion"),
  });
  let shown = null;
  const refresh = () => {
    const { kind, q0, q1, points } = settings();
    kinds.set(kind);
    ends.from.forEach((row, k) => row.set(q0[k]));
    ends.to.forEach((row, k) => row.set(q1[k]));
    duration.set(settings().duration);
    list.replaceChildren(
      ...points.map((p, k) =>
        numberControl({
          store,
          label: `position ${k + 1}`,
          title: `time of position ${k + 1}: ${coordinatesText({ model, store }, p.q)}`,
          unit: "s",
          value: p.t,
          slider: false,
          lower: k ? points[k - 1].t + 1e-3 : null,
          upper: k + 1 < points.length ? points[k + 1].t - 1e-3 : null,
          change: (t) =>
            change({ points: points.map((old, j) => (j === k ? { ...old, t } : old)) }, "time of a position"),
        }),
      ),
    );
    const now = kind === "spline" ? byPoints : kind === "file" ? byFile : byLaw;
    if (shown !== now) body.replaceChildren((shown = now));
  };
  refresh();
  return { element: [kinds, body], refresh };
}

function peakTable({ model }, { samples, torques }) {
  const names = shortLabels(model.velocities.map((v) => v.label));
  const rows = model.velocities.map((v, k) => {
    const values = torques.map(({ total }) => total[k]);
    const at = values.reduce((best, x, i) => (Math.abs(x) > Math.abs(values[best]) ? i : best), 0);
    const joint = model.joints[v.joint];
    const limit = joint.effort[k - joint.v[0]] ?? null;
    const over = limit !== null && Math.abs(values[at]) > limit;
    const rms = Math.sqrt(values.reduce((s, x) => s + x * x, 0) / values.length);
    return el(
      "tr",
      { class: over ? "over" : "" },
      el("th", { scope: "row", text: names[k], title: v.label }),
      el("td", { text: short(values[at]), "data-value": String(values[at]) }),
      el("td", { text: samples[at].t.toFixed(2) }),
      el("td", { text: short(rms), "data-value": String(rms) }),
      el("td", { text: limit === null ? "" : short(limit) }),
      el("td", { class: "unit", text: v.effort }),
    );
  });
  return el(
    "table",
    { class: "values peaks", "aria-label": "peak torques" },
    el(
      "thead",
      {},
      el(
        "tr",
        {},
        ["", "peak", "at [s]", "RMS", "limit", ""].map((text) => el("th", { scope: "col", text })),
      ),
    ),
    el("tbody", {}, rows),
  );
}

function chartsOf(app, { motion, samples, torques }, joint) {
  const { model } = app;
  const t = motion.t.subarray(0, motion.count);
  const column = (read) => Float64Array.from({ length: samples.length }, (_, i) => read(i));
  const labels = model.velocities.map((v) => v.label);
  const efforts = model.velocities.map((v) => v.effort);
  const totals = byUnit("torque", efforts, (k) => ({ name: labels[k], t, values: column((i) => torques[i].total[k]) }));
  const causes = {
    title: `by cause: ${labels[joint]}`,
    unit: efforts[joint],
    series: [...CAUSES, "total"]
      .map((name) => ({ name, t, values: column((i) => torques[i][name][joint]), dashed: name === "total" }))
      .filter((s) => s.name !== "payload" || s.values.some((x) => x !== 0)),
  };
  const accelerations = byUnit(
    "acceleration",
    model.velocities.map((v) => `${v.unit}^2`),
    (k) => ({ name: labels[k], t, values: column((i) => samples[i].qdd[k]) }),
  );
  return [...totals, causes, ...motionCharts(model, motion), ...accelerations];
}
