// Small steps by buttons, again and again while one is held: of joints, or of a frame along and about the axes of the
// ground ("world") or its own ("tool").

import { numberControl } from "./controls.js";
import { turn } from "./dh.js";
import { choice, el, repeated } from "./elements.js";
import { framePose, solvePose } from "./inverse_kinematics.js";
import { shortLabels } from "./names.js";
import { forth, moved, place, product, rotated } from "./poses.js";

const HALVINGS = 12; // of a step that does not fit
const AXES = ["joint", "world", "tool"];
const TITLES = {
  joint: "one joint at a time",
  world: "along and about the axes of the ground",
  tool: "along and about the axes of the frame itself",
};

// The pose after a step along (k = 0, 1, 2) or about (3, 4, 5) an axis of the ground or of the frame.
export function jogged(T, k, amount, isTool) {
  const along = [0, 1, 2].map((i) => (i === k ? amount : 0));
  if (k < 3) {
    const way = isTool ? forth(T, along) : along;
    return moved(
      T,
      place(T).map((x, i) => x + way[i]),
    );
  }
  if (!isTool) return rotated(T, k - 3, amount);
  return product(T, turn(k - 3, amount));
}

// Returns { element, refresh }: settings() has axes, step [m] and turn [rad].
export function buildJog(app, { frame, settings, change, weights, isPose }) {
  const { store, kernel, model } = app;
  // As far along the axis as the frame goes, and nowhere else.
  const go = (k, sign) => {
    const T = framePose(kernel, store.get("q"), frame());
    const step = sign * (k < 3 ? settings().step : settings().turn);
    const goal = (share) => jogged(T, k, share * step, settings().axes === "tool");
    const tried = (share) => solvePose(app, frame(), goal(share), { weights: weights() });
    let [best, low, high] = [tried(1), 0, 1];
    if (!best.converged) {
      best = null;
      for (let n = 0; n < HALVINGS; n++) {
        const found = tried((low + high) / 2);
        if (found.converged) [best, low] = [found, (low + high) / 2];
        else high = (low + high) / 2;
      }
    }
    if (best && !app.moveTo(best.q, { undo: `jog ${frame().name}` })) return;
    const way = `${sign > 0 ? "" : "-"}${"xyz"[k % 3]}${settings().axes === "tool" ? " of itself" : ""}`;
    const where = k < 3 ? `further along ${way}` : `further about ${way}`;
    app.say(high < 1 ? `${frame().name} cannot move ${where} here${isPose() ? " with this rotation" : ""}.` : "");
  };
  const goJoint = (k, sign) => {
    const c = model.coordinates[k];
    const x = store.get("q")[k] + sign * (c.unit === "rad" ? settings().turn : settings().step);
    const next = Math.min(c.upper ?? Infinity, Math.max(c.lower ?? -Infinity, x));
    app.say(next === x ? "" : `${c.label} is at its limit.`);
    const q = Float64Array.from(store.get("q"));
    q[k] = next;
    app.moveTo(q, { held: c.velocity < 0 ? [] : [c.velocity], undo: `jog ${c.label}` });
  };
  const { joints, frames } = buildRows(model, go, goJoint);
  const box = el("div", {});
  const size = (label, unit, field, upper) =>
    numberControl({
      store,
      label,
      unit,
      value: settings()[field],
      lower: 1e-6,
      upper,
      slider: false,
      change: (x) => change({ [field]: x }),
    });
  const sizes = { step: size("step", "m", "step", 10), turn: size("angle", "rad", "turn", Math.PI) };
  const axes = choice(AXES, {
    label: "jog in",
    value: settings().axes,
    titles: TITLES,
    change: (x) => change({ axes: x }),
  });
  return {
    element: [axes, box, ...Object.values(sizes)],
    refresh: () => {
      const now = settings().axes;
      axes.set(now);
      const shown = now === "joint" ? joints : frames.slice(0, isPose() ? 2 : 1);
      if ([...box.children].some((x, k) => x !== shown[k]) || box.children.length !== shown.length)
        box.replaceChildren(...shown);
      for (const [field, control] of Object.entries(sizes)) control.set(settings()[field]);
    },
  };
}

// Rows of buttons: { joints, frames }, of go(axis, sign) and goJoint(coordinate, sign).
function buildRows(model, go, goJoint) {
  const button = (text, title, label, action) =>
    repeated(el("button", { type: "button", text, title, "aria-label": label }), action);
  const signs = [-1, 1].map((sign) => ({ sign, mark: sign > 0 ? "+" : "\u2212", word: sign > 0 ? "plus" : "minus" }));
  const line = (name, buttons) =>
    el(
      "div",
      { class: "control turns jog" },
      el("span", { class: "name", text: name }),
      el("span", { class: "buttons" }, buttons),
    );
  const row = (name, from, verb) =>
    line(
      name,
      [0, 1, 2].flatMap((k) =>
        signs.map(({ sign, mark, word }) => {
          const axis = "xyz"[k];
          const title = `${verb} ${sign > 0 ? "" : "-"}${axis}; held, again and again`;
          return button(mark + axis, title, `${verb} ${word} ${axis}`, () => go(from + k, sign));
        }),
      ),
    );
  const names = shortLabels(model.coordinates.map((c) => c.label));
  const joints = model.coordinates.flatMap((c, k) =>
    c.unit === "1" || model.joints[c.joint].floats
      ? []
      : [
          line(
            names[k],
            signs.map(({ sign, mark, word }) =>
              button(mark, `${c.label}; held, again and again`, `${c.label} ${word}`, () => goJoint(k, sign)),
            ),
          ),
        ],
  );
  return { joints, frames: [row("move", 0, "move along"), row("rotate", 3, "rotate about")] };
}
