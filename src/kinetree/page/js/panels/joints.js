// Joints moved by hand: a slider and a box per coordinate, velocities, free parameters.

import { numberControl } from "../controls.js";
import { breakable, el, isLong, section } from "../elements.js";
import { ownParameters, shortLabels } from "../names.js";

export const panel = {
  name: "Joints",
  key: "j",
  title: "move the joints, and change free parameters",
  needs: ["poses", "integrate"],
  suits: (app) => !app.kernel.has("twists"), // the panel of kinematics has the same sliders, and more

  build(host, app) {
    const refresh = buildPositions(host, app);
    return {
      enter() {
        refresh();
        app.plots.show([]);
        app.stage.refresh();
      },
    };
  },
};

// Sliders of all coordinates and free parameters; returns the function that shows the present numbers.
export function buildPositions(host, app) {
  const { model, store } = app;
  const names = shortLabels(model.coordinates.map((c) => c.label));
  const rows = model.coordinates.map((c, k) => (c.unit === "1" ? null : coordinateRow(app, c, k, names[k])));
  host.append(section("Positions", rows.filter(Boolean), freeJoints(app)));
  host.append(
    el(
      "div",
      { class: "buttons" },
      el("button", {
        type: "button",
        text: "Start position",
        title: "back to the first coordinates (0)",
        onclick: () => home(app),
      }),
      el("button", {
        type: "button",
        text: "Random",
        title: "random coordinates within the limits",
        onclick: () => random(app),
      }),
    ),
  );
  app.keys.add("0", "joints back to the start", () => home(app));
  const own = ownParameters(model); // lengths that the page made parameters have controls in the mode Loops
  const parameters = model.parameters.map((p, k) =>
    !own.includes(k)
      ? null
      : numberControl({
          store,
          label: p.name,
          unit: p.unit,
          value: store.get("parameters")[k],
          slider: around(p.value),
          change: (value) => {
            const next = Float64Array.from(store.get("parameters"));
            next[k] = value;
            store.set({ parameters: next }, { undo: `set ${p.name}` });
            if (model.closed) app.moveTo(store.get("q"));
          },
        }),
  );
  if (parameters.some(Boolean)) host.append(section("Free parameters", parameters.filter(Boolean)));
  const refresh = () => {
    rows.forEach((row, k) => row && row.set(store.get("q")[k]));
    parameters.forEach((row, k) => row?.set(store.get("parameters")[k]));
  };
  store.on(["q", "units", "parameters"], refresh);
  return refresh;
}

export function coordinateRow(app, c, k, name = c.label) {
  const { store, data } = app;
  const half = c.unit === "rad" ? Math.PI : data.scene.size;
  return numberControl({
    store,
    label: name,
    unit: c.unit,
    value: store.get("q")[k],
    lower: c.lower,
    upper: c.upper,
    slider: [c.lower ?? -half, c.upper ?? half],
    title: c.label,
    change: (value) => {
      const q = Float64Array.from(store.get("q"));
      q[k] = value;
      app.moveTo(q, { held: c.velocity < 0 ? [] : [c.velocity], undo: `move ${c.label}` });
    },
  });
}

// Joints with quaternions are rotated by small steps about their own axes.
function freeJoints(app) {
  const { model, store, kernel } = app;
  return model.joints.flatMap((joint) => {
    const isTurned = model.coordinates.some((c) => c.unit === "1" && model.joints[c.joint] === joint);
    if (!isTurned) return [];
    const first = joint.v[0];
    const turn = (axis, sign) => {
      const dq = new Float64Array(model.nv);
      dq[first + axis] = (sign * 5 * Math.PI) / 180;
      app.moveTo(kernel.integrate(store.get("q"), dq), { undo: `rotate ${joint.name}` });
    };
    const button = (axis, sign) =>
      el("button", {
        type: "button",
        text: `${sign > 0 ? "+" : "\u2212"}${"xyz"[axis]}`,
        title: `rotate ${joint.name} by ${sign > 0 ? "" : "-"}5 degrees about its ${"xyz"[axis]} axis`,
        onclick: () => turn(axis, sign),
      });
    const label = `${joint.name} rotation`;
    return [
      el(
        "div",
        { class: `control turns${isLong(label) ? " long" : ""}` },
        el("span", { class: "name", title: joint.name }, breakable(label)),
        el(
          "span",
          { class: "buttons" },
          [0, 1, 2].flatMap((axis) => [button(axis, -1), button(axis, 1)]),
        ),
      ),
    ];
  });
}

function home(app) {
  app.store.set({ parameters: Float64Array.from(app.data.first.parameters) }, { undo: "start position" });
  app.moveTo(Float64Array.from(app.data.first.q), { undo: "start position" });
}

function random(app) {
  const { model, store, data } = app;
  const half = (c) => (c.unit === "rad" ? Math.PI : 0.3 * data.scene.size);
  const q = Float64Array.from(store.get("q"), (x, k) => {
    const c = model.coordinates[k];
    if (c.unit === "1" || model.joints[c.joint].floats) return x;
    return (c.lower ?? -half(c)) + Math.random() * ((c.upper ?? half(c)) - (c.lower ?? -half(c)));
  });
  app.moveTo(q, { undo: "random position" });
}

// A range about the value of a parameter, which is typed beyond it.
function around(value) {
  return value > 0 ? [0, 2 * value] : value < 0 ? [2 * value, 0] : [-1, 1];
}
