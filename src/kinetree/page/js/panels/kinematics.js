// Kinematics: joints by sliders, the pose of any frame, its Jacobian, and inverse kinematics by dragging, jogging or
// typing.

import { motionCharts } from "../charts.js";
import { numberControl } from "../controls.js";
import { choice, el, section, toggle, valueTable } from "../elements.js";
import { buildHandle } from "../handle.js";
import { poseTable } from "../inspector.js";
import { allSolutions, frameJacobian, framePose, movingFrames, solvePose } from "../inverse_kinematics.js";
import { buildJog } from "../jog.js";
import { cycloidTo } from "../joint_motions.js";
import { isRedundant, keepsRotation, manipulability, translationMeasure } from "../manipulability.js";
import { loadLine } from "../names.js";
import { anglesOf, moved, place, poseOfAngles } from "../poses.js";
import { buildSolutions } from "../solutions.js";
import { sharedUnit, short } from "../units.js";
import { cloudLines, sampleCloud } from "../workspace.js";
import { buildPositions } from "./joints.js";

const NAMES = ["x", "y", "z", "roll", "pitch", "yaw"];
const POSITION = [0, 0, 0, 1, 1, 1];
const WHOLE = [1, 1, 1, 1, 1, 1];
const TRAVEL = 2; // [s] of the motion to a solution

export const panel = {
  name: "Move",
  key: "k",
  title: "move the joints or a frame, and read poses and Jacobians",
  needs: ["poses", "integrate", "twists"],
  suits: (app) => app.model.bodies.length > 0,

  build(host, app) {
    const { model, store, kernel } = app;
    const frames = movingFrames(model);
    store.define(
      "kinematics",
      {
        frame: kernel.frame,
        target: "",
        axes: "world",
        step: 0.02,
        turn: Math.PI / 36,
        handle: true,
        ellipsoid: false,
      },
      { link: true },
    );
    const given = app.readLink().kinematics;
    if (given) store.set({ kinematics: { ...store.get("kinematics"), ...given } });
    const settings = () => store.get("kinematics");
    const change = (changes) => store.set({ kinematics: { ...settings(), ...changes } });
    const frame = () => frames.find((f) => f.name === settings().frame) || frames[frames.length - 1];
    // Chosen by the reader, or what the frame can do.
    const aim = () => settings().target || (keepsRotation(app, frame()) ? "pose" : "position");
    const weights = () => (aim() === "pose" ? WHOLE : POSITION);
    const here = () => store.get("mode") === panel.name;
    const now = () => framePose(kernel, store.get("q"), frame());
    let path = null;

    // Bring the frame to a pose, or as near as it goes.
    function reach(goal, undo) {
      const found = solvePose(app, frame(), goal, { weights: weights() });
      const away = [`${short(found.position)} m`, ...(aim() === "pose" ? [`${short(found.rotation)} rad`] : [])].join(
        " and ",
      );
      if (!app.moveTo(found.q, { undo })) return found;
      app.say(found.converged ? "" : `The frame cannot reach this ${aim()}: the nearest is ${away} away.`);
      return found;
    }

    const refreshPositions = buildPositions(host, app);
    const pick = el(
      "select",
      {
        "aria-label": "frame",
        title: "the frame that is moved and read",
        onchange: () => change({ frame: pick.value }),
      },
      frames.map((f) => el("option", { value: f.name, text: f.name })),
    );
    const pose = el("div", { class: "pose" });
    const typed = NAMES.map((name, k) =>
      numberControl({
        store,
        label: name,
        title: `${name} of the frame`,
        unit: k < 3 ? "m" : "rad",
        value: 0,
        slider: false,
        text: short, // they vary as a handle is dragged
        change: (x) => {
          const next = anglesOf(now());
          next[k] = x;
          reach(poseOfAngles(next), `${name} of ${frame().name}`);
        },
      }),
    );
    const target = choice(["pose", "position"], {
      label: "what the frame keeps while it moves",
      value: aim(),
      titles: { pose: "keep the rotation of the frame", position: "let the frame rotate freely" },
      change: (x) => change({ target: x }),
    });
    const jog = buildJog(app, { frame, settings, change, weights, isPose: () => aim() === "pose" });
    const handleToggle = toggle("handle", {
      title: "a handle at the frame that can be dragged",
      on: settings().handle,
      change: (on) => change({ handle: on }),
    });
    const ellipsoidToggle = toggle("ellipsoid", {
      title: "velocities of the frame for joint velocities of length one",
      on: settings().ellipsoid,
      change: (on) => change({ ellipsoid: on }),
    });
    const solutions = buildSolutions(app, {
      find: () => allSolutions(app, frame(), now(), { weights: weights() }),
      frame,
      free: () => isRedundant(app, frame(), aim() === "pose"),
      travel,
    });
    const workspace = buildWorkspace(app, { frame, here });
    const numbers = el("div", {});
    const warning = el("p", { class: "error", role: "status", hidden: true });
    host.append(
      section("Frame", pick, pose, el("div", { class: "two" }, typed)),
      section("Move it", target, jog.element, el("div", { class: "buttons" }, handleToggle)),
      section("All solutions", solutions.element),
      section("Jacobian", warning, numbers, el("div", { class: "buttons" }, ellipsoidToggle)),
      section("Workspace", workspace.element),
    );

    function travel(from, q) {
      path = cycloidTo(model, from, q, TRAVEL, (x) => kernel.close(x));
      path.once = true;
      store.set({ motion: path, time: 0 });
      app.plots.show(part.charts());
      app.player.play(true);
    }
    function refresh() {
      if (!here()) return;
      const [f, q] = [frame(), store.get("q")];
      const T = now();
      pick.value = f.name;
      pose.replaceChildren(poseTable(T.slice(0, 12)));
      anglesOf(T).forEach((x, k) => typed[k].set(x));
      typed.forEach((row) => row.refresh());
      target.set(aim());
      handleToggle.set(settings().handle);
      ellipsoidToggle.set(settings().ellipsoid);
      jog.refresh();
      const J = frameJacobian(kernel, q, f);
      const found = manipulability(app, f, J);
      warning.hidden = !found.singular;
      warning.textContent = found.singular
        ? `Near a singular position: some motions of ${f.name} need very large joint velocities.`
        : "";
      numbers.replaceChildren(
        ...jacobianTable(model, J),
        valueTable([
          ["manipulability", short(found.measure), "", found.measure],
          ["condition", short(found.condition), "", found.condition],
        ]),
      );
    }
    const handle = buildHandle(app, {
      on: () => here() && settings().handle,
      pose: now,
      moved: (position) => reach(moved(now(), position), `drag ${frame().name}`),
    });
    store.on(["q", "units", "parameters", "kinematics"], refresh);
    store.on(["parameters"], () => {
      workspace.clear();
      solutions.clear();
    });
    store.on(["kinematics"], () => {
      workspace.follow();
      solutions.follow(`${frame().name}/${aim()}`);
    });

    const part = {
      enter() {
        if (store.get("motion") !== path) store.set({ motion: path, time: path?.end ?? 0 }, { by: "offered" });
        refreshPositions();
        refresh();
        app.plots.show(part.charts());
        app.player.show();
      },
      leave() {
        app.player.play(false);
      },
      charts: () => (path ? [...motionCharts(model, path), measures(app, path, frame())] : []),
      layer() {
        /** @type {{ [name: string]: object[] }[]} */
        const kept = [handle.layer(), workspace.layer(), solutions.layer()].filter(Boolean);
        if (settings().ellipsoid)
          kept.push({
            items: [
              manipulability(app, frame(), frameJacobian(kernel, store.get("q"), frame())).ellipsoid(place(now())),
            ],
          });
        return Object.fromEntries(
          ["items", "lines", "marks", "labels", "places"].map((name) => [name, kept.flatMap((x) => x[name] || [])]),
        );
      },
      python: () => python(app, frame()),
    };
    return part;
  },
};

// Points that the frame reaches, sampled between the pictures of the page.
function buildWorkspace(app, { frame, here }) {
  let cloud = null;
  let of = ""; // the name of the frame that reaches the points
  const work = () => {
    if (!cloud || !here()) return;
    cloud = sampleCloud(app, frame(), cloud);
    app.stage.refresh();
    if (!cloud.done) requestAnimationFrame(work);
  };
  const clear = () => {
    cloud = null;
    app.stage.refresh();
  };
  const sample = () => {
    cloud = [];
    of = frame().name;
    work();
  };
  const follow = () => {
    if (cloud && frame().name !== of) clear(); // points of another frame
  };
  const element = el(
    "div",
    { class: "buttons" },
    el("button", { type: "button", text: "Sample", title: "points that the frame reaches", onclick: sample }),
    el("button", { type: "button", text: "Clear", title: "remove the points", onclick: clear }),
  );
  return { element, clear, follow, layer: () => (cloud ? { lines: cloudLines(app, cloud) } : null) };
}

function jacobianTable(model, J) {
  const { nv } = model;
  if (nv > 12) return [el("p", { class: "hint", text: `6 x ${nv} numbers` })];
  const names = ["wx", "wy", "wz", "vx", "vy", "vz"];
  const rows = names.map((name, i) =>
    el(
      "tr",
      {},
      el("th", { scope: "row", text: name }),
      Array.from({ length: nv }, (_, k) =>
        el("td", { text: shortest(J[i * nv + k]), "data-value": String(J[i * nv + k]) }),
      ),
    ),
  );
  return [
    el(
      "table",
      { class: "matrix jacobian", "aria-label": "Jacobian, angular part first, in the axes of the ground" },
      el("tbody", {}, rows),
    ),
    el("p", {
      class: "hint",
      text:
        `Rows in rad/s and m/s, per ` +
        `${sharedUnit(model.velocities.map((v) => v.unit)).replace(", ", " or ")} of the joint of each column.`,
    }),
  ];
}

const shortest = (x) => (Math.abs(x) < 5e-4 ? "0" : x.toFixed(3));

function measures(app, path, frame) {
  const { kernel, model } = app;
  const values = Float64Array.from({ length: path.count }, (_, k) =>
    translationMeasure(app, frame, frameJacobian(kernel, path.q.slice(k * model.nq, (k + 1) * model.nq), frame)),
  );
  return {
    title: "manipulability",
    unit: "",
    series: [{ name: frame.name, t: path.t.subarray(0, path.count), values }],
  };
}

function python(app, frame) {
  const { store, kernel } = app;
  const q = `[${Array.from(store.get("q"), String).join(", ")}]`;
  const T = Array.from(
    { length: 4 },
    (_, i) => `[${Array.from(framePose(kernel, store.get("q"), frame).slice(4 * i, 4 * i + 4), String).join(", ")}]`,
  );
  const name = JSON.stringify(frame.name);
  return [
    "import kinetree as kt",
    "",
    loadLine(app),
    `q = ${q}`,
    `T = arm.pose(q, ${name})`,
    `J = arm.jacobian(q, ${name})`,
    "",
    `target = [${T.join(",\n          ")}]`,
    `solutions = arm.inverse_kinematics(target, ${name}, all=True)`,
    "",
  ].join("\n");
}
