// Forward dynamics in the page: an initial state, torques and springs, motion in real time or ahead of it.

import { el, section } from "../elements.js";
import { Motion } from "../motion.js";
import { charts } from "../plots.js";

const FRAME = 1 / 60; // [s] between recorded samples
const STEP = 1e-3; // [s] of a Runge-Kutta step, at most

export const panel = {
  name: "Forward",
  key: "f",
  title: "let the mechanism move under gravity, torques and control",
  needs: ["time_step", "kinetic_energy", "potential_energy"],

  build(host, app) {
    const { model, store, kernel } = app;
    let motion = null;

    function begin() {
      const state = kernel.begin(store.get("q"), kernel.closeVelocities(store.get("q"), store.get("qd")));
      motion = new Motion(model, { name: "free motion" });
      const energies = [[], [], []];
      motion.columns = [{ name: "energy", labels: ["kinetic", "potential", "total"], units: ["J", "J", "J"], values: energies }];
      const record = () => {
        motion.push(state.t, state.q, state.qd);
        const e = kernel.energies(state.q, state.qd);
        [e.kinetic, e.potential, e.total].forEach((x, k) => energies[k].push(x));
      };
      motion.extend = (until) => {
        while (state.t < until - 1e-9) {
          if (!kernel.advance(state, FRAME / Math.ceil(FRAME / STEP), Math.ceil(FRAME / STEP))) {
            delete motion.extend;
            app.say("The motion left the range of numbers; it ends here.");
            break;
          }
          record();
        }
        return motion.end;
      };
      record();
      store.set({ motion, time: 0 }, { by: "player" });
      app.plots.show(part.charts());
    }

    host.append(section("Motion", el("div", { class: "buttons" },
      el("button", { type: "button", text: "Restart from here", title: "begin at the present position, at rest", onclick: () => {
        app.player.play(false);
        store.set({ qd: new Float64Array(model.nv) });
        begin();
      } }))),
      el("p", { class: "hint", text: "Space lets the mechanism move. The curves grow with the motion." }));

    const part = {
      enter() {
        if (store.get("motion") !== motion || !motion) begin();
        app.plots.show(part.charts());
      },
      leave() { app.player.play(false); },
      charts() {
        const { t, count } = motion;
        const of = (values, size, labels) => labels.map((_, k) => strided(values, size, k, count));
        const q = model.coordinates, v = model.velocities;
        return [
          ...charts("position", q.map((c) => c.label), q.map((c) => c.unit), t, of(motion.q, model.nq, q), { count }),
          ...charts("velocity", v.map((c) => c.label), v.map((c) => c.unit), t, of(motion.qd, model.nv, v), { count }),
          ...charts("energy", motion.columns[0].labels, motion.columns[0].units, t, motion.columns[0].values, { count }),
        ];
      },
    };
    let shown = 0;
    store.on(["time"], () => {
      if (store.get("mode") !== "Forward" || store.get("motion") !== motion || shown === motion.version) return;
      shown = motion.version;
      app.plots.show(part.charts());
    });
    return part;
  },
};

function strided(values, size, k, count) {
  const out = new Float64Array(count);
  for (let i = 0; i < count; i++) out[i] = values[i * size + k];
  return out;
}
