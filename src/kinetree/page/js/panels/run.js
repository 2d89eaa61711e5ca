// A recorded run: what it is, and its curves.

import { recordedCharts } from "../charts.js";
import { el, section, valueTable } from "../elements.js";
import { Motion } from "../motion.js";

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
      section(
        "Recorded run",
        valueTable([
          ["method", run.method],
          ["status", run.status],
          ["samples", run.samples.toLocaleString("en")],
          ["from", motion.start.toFixed(3), "s", motion.start],
          ["to", motion.end.toFixed(3), "s", motion.end],
        ]),
      ),
      el("p", { class: "hint", text: "Space plays and pauses. Drag in a curve to choose an instant." }),
    );
    return {
      enter() {
        if (store.get("motion") !== motion)
          store.set({ motion, ghost: null, time: Math.min(Math.max(store.get("time"), motion.start), motion.end) });
        store.set({ time: store.get("time") + 0 }, { by: "player" });
        plots.show(this.charts());
        player.show();
      },
      leave() {
        player.play(false);
      },
      charts: () => recordedCharts(run),
    };
  },
};
