// The driving joint of a closed mechanism: its range, the lengths on which it depends, and a turn at constant velocity
// with the curve of a point, torque and bearing forces.

import { numberControl } from "./controls.js";
import { el, section } from "./elements.js";
import { fourBar, grashof } from "./four_bar.js";
import { inSlices } from "./frames.js";
import { movingFrames } from "./inverse_kinematics.js";
import { recloseWith } from "./loop_closing.js";
import { drivesOf, leadsOf, positionOf, rangeOf } from "./loop_range.js";
import { Turn } from "./loop_turn.js";
import { bearingArrows, python, rangeText, turnCharts } from "./loop_turn_views.js";
import { shortLabels } from "./names.js";
import { ballMatrix, transform } from "./vectors.js";

const SETTLED = 200; // [ms] after the last change by hand, before a range is computed anew

export function buildDrive(app, { leads, changed }) {
  const { model, store, kernel, data } = app;
  const able = drivesOf(app);
  const names = shortLabels(model.velocities.map((v) => v.label));
  const frames = movingFrames(model);
  const first = able.find((k) => model.bodies[model.velocities[k].joint].parent < 0) ?? able[0] ?? 0;
  store.define(
    "loops",
    {
      drive: first,
      velocity: model.velocities[first].unit === "rad/s" ? 2 * Math.PI : 0.1,
      frame: kernel.frame,
      forces: true,
    },
    { undo: true, link: true },
  );
  const given = app.readLink().loops;
  if (given) store.set({ loops: { ...store.get("loops"), ...given } });
  const settings = () => store.get("loops");
  const change = (changes, undo) => store.set({ loops: { ...settings(), ...changes } }, { undo });
  const label = () => model.velocities[settings().drive].label;
  const isOpen = () => kernel.gap(store.get("q")) > 1e-8 * data.scene.size;
  let [range, turn, curve, giveUp, timer, fitted, busy] = [null, null, null, () => {}, 0, false, false];

  const pick = el(
    "select",
    {
      "aria-label": "driving joint",
      title: "the joint that drives",
      onchange: () => change({ drive: Number(pick.value) }, "driving joint"),
    },
    able.map((k) => el("option", { value: String(k), text: names[k] })),
  );
  const velocity = numberControl({
    store,
    label: "velocity",
    title: "velocity of the drive",
    unit: model.velocities[first].unit,
    value: settings().velocity,
    slider: false,
    change: (x) =>
      x > 0 ? change({ velocity: x }, "velocity of the drive") : velocity.say("Type a velocity above zero."),
  });
  const frame = el(
    "select",
    {
      "aria-label": "point of the curve",
      title: "the point whose path is drawn",
      onchange: () => change({ frame: frame.value }, "point of the curve"),
    },
    frames.map((f) => el("option", { value: f.name, text: f.name })),
  );
  const forces = el("button", {
    type: "button",
    class: "toggle",
    text: "bearing forces",
    title: "forces in all bearings as arrows",
    onclick: () => change({ forces: !settings().forces }),
  });
  const verdict = el("p", { class: "verdict", role: "status" });
  const rule = el("p", { class: "hint" });
  const lengths = model.lengths.map((x) => {
    const value = store.get("parameters")[x.parameter];
    return numberControl({
      store,
      label: x.label,
      title: `length of ${x.label}${x.note ? `: ${x.note}` : ""}`,
      unit: "m",
      value,
      slider: [0.1 * value, 2.5 * value],
      change: (next) => (next > 0 ? setLength(x, next) : null),
    });
  });

  function setLength(x, value) {
    const parameters = Float64Array.from(store.get("parameters"));
    parameters[x.parameter] = value;
    app.player.play(false);
    store.set({ parameters }, { undo: `length of ${x.label}` });
    const made = recloseWith(app, store.get("q"), leads());
    store.set({ q: made.q });
    app.say(made.closed ? "" : "The loops cannot close with these lengths.");
    changed();
  }

  // Compute range and turn anew, in slices.
  function compute() {
    giveUp();
    const q = store.get("q");
    if (isOpen()) {
      [range, turn, curve] = [null, null, null];
      return shown();
    }
    busy = true;
    part.refresh();
    const drive = settings().drive;
    // those of this position: the panel may still show others
    const held = leadsOf(app, q, [drive]).filter((k) => k !== drive);
    giveUp = inSlices(rangeOf(app, q, drive, held), {
      done: (found) => {
        range = found;
        const point = tracer();
        curve = new Float32Array(range.curve.flatMap((x) => pointAt(x, point)));
        if (range.closed && range.curve.length > 2) curve = new Float32Array([...curve, ...curve.subarray(0, 3)]);
        if (range.kind === "locked") {
          turn = null;
          return shown();
        }
        const made = new Turn(app, { q, drive, leads: [drive, ...held], range, velocity: settings().velocity, point });
        giveUp = inSlices(made.compute(), {
          done: () => {
            turn = made;
            shown();
          },
        });
      },
    });
  }
  // The point whose path is drawn, in the frame of its body.
  function tracer() {
    const { body, pose } = frames.find((f) => f.name === settings().frame) || frames[frames.length - 1];
    return { body, at: [pose[3], pose[7], pose[11]] };
  }
  function pointAt(q, { body, at }) {
    const T = kernel.poses(q).subarray(16 * body, 16 * body + 16);
    return [0, 1, 2].map((i) => T[4 * i] * at[0] + T[4 * i + 1] * at[1] + T[4 * i + 2] * at[2] + T[4 * i + 3]);
  }
  function shown() {
    busy = false;
    if (turn?.count && store.get("motion") !== turn) {
      const here = positionOf(app, store.get("q"), turn.drive);
      store.set(
        { motion: turn, time: Math.min(turn.end, Math.max(0, (here - turn.from) / turn.velocity)) },
        { by: "player" },
      );
    }
    if (!turn && store.get("motion")) store.set({ motion: null });
    if (curve && !fitted) {
      fitted = true;
      app.stage.fit();
    }
    app.plots.show(part.charts());
    app.player.show();
    part.refresh();
    app.stage.refresh();
  }
  function sentence() {
    if (isOpen()) return "With these lengths the loops do not close.";
    if (busy) return `Following ${label()} ...`;
    return range ? rangeText(range, label(), model.velocities[settings().drive].unit, store.get("units")) : "";
  }

  store.on(["loops"], () => {
    changed();
    later(0);
  });
  function later(wait = SETTLED) {
    clearTimeout(timer);
    timer = setTimeout(() => {
      if (store.get("mode") === "Loops" && !app.player.playing) compute();
    }, wait);
  }

  const part = {
    sections: [
      section(
        "Drive",
        el("div", { class: "control plain" }, el("span", { class: "name", text: "joint" }), pick),
        velocity,
        el("div", { class: "control plain" }, el("span", { class: "name", text: "curve of" }), frame),
        verdict,
        rule,
        el("div", { class: "buttons" }, forces),
      ),
      ...(lengths.length
        ? [
            section(
              "Lengths",
              lengths,
              el(
                "div",
                { class: "buttons" },
                el("button", {
                  type: "button",
                  text: "Lengths of the model",
                  title: "all lengths as they were",
                  onclick: () => {
                    store.set(
                      { parameters: Float64Array.from(data.first.parameters), q: Float64Array.from(data.first.q) },
                      { undo: "lengths of the model" },
                    );
                    changed();
                  },
                }),
              ),
            ),
          ]
        : []),
    ],
    drive: () => settings().drive,
    moved: () => later(),
    enter() {
      fitted = false;
      later(0);
    },
    leave() {
      giveUp();
      clearTimeout(timer);
      app.player.play(false);
    },
    refresh() {
      pick.value = String(settings().drive);
      frame.value = settings().frame;
      velocity.set(settings().velocity);
      forces.setAttribute("aria-pressed", String(settings().forces));
      forces.hidden = !kernel.has("loop_loads", "closure_bias", "driven_torques");
      lengths.forEach((row, k) => row.set(store.get("parameters")[model.lengths[k].parameter]));
      verdict.textContent = sentence();
      const bars = fourBar(app, store.get("q"));
      rule.textContent = bars ? grashof(bars).text : "";
      rule.hidden = !bars;
    },
    charts: () => (turn?.count ? turnCharts(model, turn, label(), settings().frame) : []),
    layer(matrices) {
      const { accent, trail } = app.stage.palette;
      const out = { lines: [], labels: [], marks: [], arrows: [] };
      const { body, at } = tracer();
      if (curve) out.lines.push({ points: curve, strip: true, color: trail, width: 2, fits: true });
      const r = 0.011 * data.scene.size;
      out.marks.push({
        solid: "ball",
        matrix: ballMatrix(transform(matrices[body], at), r),
        color: accent.slice(0, 3),
      });
      if (settings().forces && turn?.loaded && store.get("motion") === turn)
        out.arrows.push(...bearingArrows(app, turn, matrices));
      return out;
    },
    python: () => python(app, settings(), turn ? turn.from : 0),
  };
  return part;
}
