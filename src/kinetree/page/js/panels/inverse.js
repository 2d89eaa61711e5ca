// Inverse dynamics: a motion of the joints by a law, a spline or a file; its torques by cause, peaks, limits and
// reactions.

import { byUnit, motionCharts } from "../charts.js";
import { numberControl } from "../controls.js";
import { breakable, el, section, toggle } from "../elements.js";
import { python, toml } from "../inverse_text.js";
import { planOf, plannedAt, reasonOf } from "../motion_plan.js";
import { buildMotionTable } from "../motion_table.js";
import { shortLabels } from "../names.js";
import { CAUSES, reactionsAt, torquesAt } from "../torques.js";
import { short } from "../units.js";

const LONG = 0.3; // of the size of the mechanism: the arrow of the largest reaction

export const panel = {
  name: "Torques",
  key: "i",
  title: "the torques of a motion, by cause",
  needs: ["poses", "twists", "inverse_dynamics", "gravity_torque", "reactions", "twist_rates"],
  suits: (app) => !reasonOf(app, "Torques"),
  reason: (app) => reasonOf(app, "Torques"),

  build(host, app) {
    const { model, store, player } = app;
    const plan = planOf(app);
    const { settings, change, frame, frames } = plan;
    const load = () => ({ gravity: settings().gravity, mass: settings().mass, frame: frame() });
    let made = null; // { motion, samples, torques, largest }

    // The pose stays, unless the motion is to be shown at an end of it that was changed: "start" or "end".
    function compute(shown = "") {
      const { samples, motion } = plan.made();
      player.play(false);
      if (!motion) {
        made = null;
        store.set({ motion: null, time: 0 });
      } else {
        const torques = samples.map((s) => torquesAt(app, s, load()));
        const forces = samples.map((s) => reactionsAt(app, s, load()));
        const largest = Math.max(1e-12, ...forces.flatMap((all) => all.map(({ vector }) => Math.hypot(...vector))));
        made = { motion, samples, torques, largest };
        const time = shown ? made.motion[shown] : Math.min(store.get("time"), made.motion.end);
        store.set({ motion: made.motion, time }, { by: shown ? "" : "offered" });
      }
      show();
    }
    function show() {
      peaks.replaceChildren(...(made ? [peakTable(app, made)] : []));
      app.plots.show(part.charts());
      player.show();
    }

    const rows = buildMotionTable(app);
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
        const now = plannedAt(made, store.get("time"));
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
      el("th", { scope: "row", title: v.label }, breakable(names[k])),
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
