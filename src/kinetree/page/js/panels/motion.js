// Motion: the table of the planned motion, played, with the curves of joints and of a frame.

import { byUnit, motionCharts } from "../charts.js";
import { el, section } from "../elements.js";
import { framePose } from "../inverse_kinematics.js";
import { pythonOfMotion } from "../inverse_text.js";
import { planOf, reasonOf } from "../motion_plan.js";
import { buildMotionTable } from "../motion_table.js";
import { place } from "../poses.js";

export const panel = {
  name: "Motion",
  key: "h",
  title: "plan a motion from initial to final values, and see it",
  needs: ["poses", "integrate", "twists"],
  later: true,
  suits: (app) => !reasonOf(app, "Motion"),
  reason: (app) => reasonOf(app, "Motion"),

  build(host, app) {
    const { store, player } = app;
    const plan = planOf(app);
    const table = buildMotionTable(app);
    const play = () => {
      player.seek(0);
      player.play(true);
    };
    const start = el("button", {
      type: "button",
      class: "main",
      text: "Play the motion",
      title: "from its start",
      onclick: play,
    });
    host.append(
      section("Motion", table.element),
      el("div", { class: "buttons" }, start),
      el("p", {
        class: "hint",
        text: "Torques has the torques of this motion, Simulate tracks it, and curves, above the chart, plot the rest.",
      }),
    );
    // The pose stays, unless the motion is to be shown at an end of it that was changed: "start" or "end".
    function compute(shown = "") {
      const { motion = null } = plan.made();
      player.play(false);
      start.disabled = !motion; // the table says why
      const time = !motion ? 0 : shown ? motion[shown] : Math.min(store.get("time"), motion.end);
      store.set({ motion, time }, { by: shown ? "" : "offered" });
      app.plots.show(part.charts());
      player.show();
    }
    const here = () => store.get("mode") === panel.name;
    const part = {
      enter() {
        table.refresh();
        compute();
      },
      leave() {
        player.play(false);
      },
      charts: () => chartsOf(app, plan),
      python: () => pythonOfMotion(app),
    };
    store.on(["inverse", "motionFile"], (_, by) => {
      table.refresh();
      if (here()) compute(["start", "end"].includes(by) ? by : "");
    });
    store.on(["parameters"], () => here() && compute());
    store.on(["units"], () => {
      table.refresh();
      if (here()) app.plots.show(part.charts());
    });
    return part;
  },
};

function chartsOf({ model, kernel }, plan) {
  const { motion, samples } = plan.made();
  if (!motion) return [];
  const t = motion.t.subarray(0, motion.count);
  const column = (read) => Float64Array.from(samples, read);
  const places = samples.map((s) => place(framePose(kernel, s.q, plan.frame())));
  return [
    ...motionCharts(model, motion),
    ...byUnit(
      "acceleration",
      model.velocities.map((v) => `${v.unit}^2`),
      (k) => ({ name: model.velocities[k].label, t, values: column((s) => s.qdd[k]) }),
    ),
    {
      title: `path of ${plan.frame().name}`,
      unit: "m",
      series: ["x", "y", "z"].map((name, k) => ({ name, t, values: Float64Array.from(places, (p) => p[k]) })),
    },
  ];
}
