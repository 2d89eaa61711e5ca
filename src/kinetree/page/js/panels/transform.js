// Transform: the pose of one frame in another, as a matrix, angles, a quaternion, and a rotation about one axis.

import { el, section, valueTable } from "../elements.js";
import { poseTable } from "../inspector.js";
import { framePose, movingFrames } from "../inverse_kinematics.js";
import { loadLine } from "../names.js";
import { anglesOf, inverse, place, product, turnBetween } from "../poses.js";
import { axisLines } from "../stage_items.js";
import { short, shownUnit } from "../units.js";
import { fromRows } from "../vectors.js";

const EYE = [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1];
const TRIAD = 0.2; // of the size of the mechanism: the length of the axes that are drawn

export const panel = {
  name: "Transform",
  key: "y",
  title: "read the transform between any two frames",
  needs: ["poses"],
  suits: (app) => app.model.bodies.length > 0,

  build(host, app) {
    const { model, store, kernel } = app;
    const frames = [
      { name: "ground", body: -1, pose: EYE },
      ...model.frames.filter((f) => f.body < 0),
      ...movingFrames(model),
    ];
    const named = (name) => frames.findIndex((f) => f.name === name);
    store.define("transform", { from: 0, to: Math.max(1, named(kernel.frame)) }, { link: true });
    const given = app.readLink().transform;
    if (frames[given?.from] && frames[given?.to]) store.set({ transform: given });
    const here = () => store.get("mode") === panel.name;
    const chosen = () => [frames[store.get("transform").from], frames[store.get("transform").to]];
    const poseIn = (f) => (f.body < 0 ? Float64Array.from(f.pose) : framePose(kernel, store.get("q"), f));
    const transform = () => {
      const [from, to] = chosen();
      return product(inverse(poseIn(from)), poseIn(to));
    };

    const change = (ends) => store.set({ transform: { ...store.get("transform"), ...ends } });
    const picks = ["from", "to"].map((side) => pickOf(frames, side, change));
    const swap = el("button", {
      type: "button",
      text: "Swap",
      title: "the inverse transform",
      onclick: () => change({ from: store.get("transform").to, to: store.get("transform").from }),
    });
    const hint = el("p", {
      class: "hint",
      text: "Two clicks on bodies choose them: from the first one to the second.",
    });
    const matrix = el("div", { class: "pose" });
    const numbers = el("div", {});
    const meaning = el("p", { class: "hint" });
    host.append(
      section(
        "Transform",
        ...picks.map((pick, k) =>
          el("label", { class: "control turns" }, el("span", { class: "name", text: ["from", "to"][k] }), pick),
        ),
        el("div", { class: "buttons" }, swap),
        hint,
        matrix,
        meaning,
      ),
      section("As numbers", numbers),
    );

    function refresh() {
      if (!here()) return;
      const T = transform();
      const [from, to] = chosen();
      picks.forEach((pick, k) => {
        pick.value = String(frames.indexOf([from, to][k]));
      });
      matrix.replaceChildren(poseTable(T.slice(0, 12)));
      meaning.textContent = `Position and axes of ${to.name}, in the axes of ${from.name}.`;
      numbers.replaceChildren(valueTable(rowsOf(T, store.get("units"))));
      app.stage.refresh();
    }
    store.on(["q", "units", "parameters", "transform"], refresh);
    // the body that is picked is the end, and the end before it the start
    store.on(["picked"], () => {
      const picked = frames.findIndex((f) => f.name === model.bodies[store.get("picked")]?.name);
      const { to } = store.get("transform");
      if (here() && picked >= 0 && picked !== to) change({ from: to, to: picked });
    });

    return {
      enter() {
        refresh();
        app.plots.show([]);
        app.player.show();
      },
      layer: () => layerOf(app, chosen(), chosen().map(poseIn)),
      python: () => python(app, ...chosen(), frames[0]),
    };
  },
};

function pickOf(frames, side, change) {
  const pick = el(
    "select",
    { "aria-label": `${side} frame`, onchange: () => change({ [side]: Number(pick.value) }) },
    frames.map((f, k) => el("option", { value: String(k), text: f.name })),
  );
  return pick;
}

// The axes of both frames, their names, and a line between them.
function layerOf({ stage, data }, frames, poses) {
  const points = new Float32Array(poses.flatMap(place));
  const labels = frames.map((f, k) => ({ text: f.name, at: place(poses[k]), strong: k === 1 }));
  return {
    lines: [
      ...axisLines(poses.map(fromRows), TRIAD * data.scene.size),
      { points, strip: true, color: stage.palette.accent, width: 2 },
    ],
    labels: frames[0] === frames[1] ? labels.slice(1) : labels,
  };
}

// Distance, roll, pitch and yaw, quaternion, and the rotation by one angle about one axis.
function rowsOf(T, units) {
  const angle = (name, x) => {
    const shown = shownUnit("rad", units);
    return [name, short(x * shown.factor), shown.unit, x];
  };
  const turn = turnBetween(EYE, T);
  const size = Math.hypot(...turn);
  const half = size > 0 ? Math.sin(size / 2) / size : 0.5;
  const quaternion = [...turn.map((x) => half * x), Math.cos(size / 2)];
  return [
    ["distance", short(Math.hypot(...place(T))), "m", Math.hypot(...place(T))],
    ...["roll", "pitch", "yaw"].map((name, k) => angle(name, anglesOf(T)[3 + k])),
    ...["x", "y", "z", "w"].map((name, k) => [`quaternion ${name}`, short(quaternion[k]), "", quaternion[k]]),
    angle("angle of rotation", size),
    ...["x", "y", "z"].map((name, k) => {
      const x = size > 0 ? turn[k] / size : 0;
      return [`axis ${name}`, short(x), "", x];
    }),
  ];
}

function python(app, from, to, ground) {
  const pose = (f) => (f === ground ? "np.eye(4)" : `arm.pose(q, ${JSON.stringify(f.name)})`);
  return [
    "import numpy as np",
    "",
    "import kinetree as kt",
    "",
    loadLine(app),
    `q = [${Array.from(app.store.get("q"), String).join(", ")}]`,
    `T = np.linalg.solve(${pose(from)}, ${pose(to)})`,
    "",
  ].join("\n");
}
