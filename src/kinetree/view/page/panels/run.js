// A recorded run: what it is, and its curves.

import { charts } from "../charts.js";
import { el, section, valueTable } from "../elements.js";
import { Motion } from "../motion.js";

const TITLES = { q: "position", qd: "velocity", tau: "torque", kinetic_energy: "energy", potential_energy: "energy", energy: "energy" };
const ENERGIES = { kinetic_energy: "kinetic", potential_energy: "potential", energy: "total" };

export const panel = {
  name: "Run",
  key: "r",
  title: "replay the recorded run and read its curves",
  needs: [],
  suits: (app) => Boolean(app.data.run),

  build(host, { data, model, store, plots, player }) {
    const { run } = data;
    const motion = Motion.recorded(model, run);
    host.append(
      section("Recorded run", valueTable([
        ["method", run.method], ["status", run.status], ["samples", run.samples.toLocaleString("en")],
        ["from", motion.start.toFixed(3), "s", motion.start], ["to", motion.end.toFixed(3), "s", motion.end],
      ])),
      el("p", { class: "hint", text: "Space plays and pauses. Drag in a curve to choose an instant." }),
    );
    return {
      enter() {
        if (store.get("motion") !== motion) store.set({ motion, ghost: null, time: Math.min(Math.max(store.get("time"), motion.start), motion.end) });
        store.set({ time: store.get("time") + 0 }, { by: "player" });
        plots.show(this.charts());
        player.show();
      },
      leave() { player.play(false); },
      charts: () => recordedCharts(run),
    };
  },
};

// The columns of a recorded run as charts; energies share one.
function recordedCharts(run) {
  const n = run.t.length;
  const found = [];
  for (const { name, labels, units, values } of run.columns) {
    const columns = labels.map((_, k) => values.subarray(k * n, (k + 1) * n));
    const energy = ENERGIES[name];
    const made = charts(TITLES[name], energy ? [energy] : labels, units, run.t, columns);
    const same = energy && found.find((chart) => chart.title === "energy");
    if (same) same.series.push(...made[0].series);
    else found.push(...made);
  }
  return found;
}
