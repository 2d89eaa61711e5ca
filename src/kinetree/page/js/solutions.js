// The solutions of inverse kinematics: a table with the joint values of each and what tells them apart, all of them as
// ghosts on the stage, and a motion from one to another that is played once.

import { el, toggle } from "./elements.js";
import { frameJacobian, framePose } from "./inverse_kinematics.js";
import { shortLabels } from "./names.js";
import { place } from "./poses.js";
import { coordinatesText, shownUnit } from "./units.js";
import { cross, dot, scale, sub, unit } from "./vectors.js";

const MOST_GHOSTS = 16;
const APART = 1e-6; // of the size of the mechanism: axes that pass each other at less meet

/**
 * Returns { element, clear, layer }. find(): solutions now (inverse_kinematics.js), each with its q; frame(): the one
 * they are of; free(): whether they are infinitely many; travel(from, to): move along a path, once.
 * @param {import("./app.js").App} app
 * @param {{ find: () => any[], frame: () => any, free: (q: any) => boolean, travel: (from: any, to: any) => void }} use
 */
export function buildSolutions(app, { find, frame, free, travel }) {
  const { store } = app;
  let found = [];
  let of = ""; // what they were found for
  let ghosts = true;
  const chosen = { A: 0, B: 1 };
  const list = el("div", { class: "solutions" });
  const play = el("button", {
    type: "button",
    text: "Play A to B",
    title: "move from the first chosen solution to the second, once",
    onclick: () => travel(found[chosen.A].q, found[chosen.B].q),
  });
  const shows = toggle("ghosts", {
    title: "draw all solutions",
    on: ghosts,
    change: (on) => {
      ghosts = on;
      shows.set(on);
      app.stage.refresh();
    },
  });
  const more = el("div", { class: "buttons", hidden: true }, play, shows);
  const show = () => {
    const count = found.length;
    const endless = count > 0 && free(found[0].q);
    const text = endless
      ? `${count} of infinitely many positions`
      : `${count} position${count === 1 ? "" : "s"} with this pose`;
    list.replaceChildren(
      el("p", { class: "hint", text }),
      ...(count ? [tableOf(app, found, frame(), chosen, travel)] : []),
    );
    more.hidden = !count;
    play.disabled = count < 2;
    app.stage.refresh();
  };
  const button = el("button", {
    type: "button",
    text: "Find",
    title: "all positions with this pose of the frame, from many starts",
    onclick: () => {
      found = find();
      Object.assign(chosen, { A: 0, B: Math.min(1, found.length - 1) });
      show();
    },
  });
  const follow = (what) => {
    if (what !== of) clear();
    of = what;
  };
  const clear = () => {
    found = [];
    list.replaceChildren();
    more.hidden = true;
  };
  store.on(["units"], () => found.length && show());
  return {
    element: [el("div", { class: "buttons" }, button), list, more],
    clear,
    follow, // clear the solutions unless they are those for this
    layer: () => (ghosts && found.length > 1 ? ghostsOf(app, found.slice(0, MOST_GHOSTS), frame()) : null),
  };
}

function tableOf(app, found, frame, chosen, travel) {
  const { model, store } = app;
  const shown = model.coordinates.map((c, k) => k).filter((k) => model.coordinates[k].unit !== "1");
  const names = shortLabels(shown.map((k) => model.coordinates[k].label));
  const labels = labelsOf(app, found, frame);
  const value = (x, c) => {
    const { factor } = shownUnit(c.unit, store.get("units"));
    return (x * factor).toFixed(factor === 1 ? 3 : 1).replace(/^-(0\.0*)$/, "$1");
  };
  const radio = (name, k) =>
    el("input", {
      type: "radio",
      name: `solution ${name}`,
      checked: chosen[name] === k,
      "aria-label": `${name} is solution ${k + 1}`,
      onchange: () => {
        chosen[name] = k;
      },
    });
  const row = ({ q }, k) =>
    el(
      "tr",
      {},
      el(
        "th",
        { scope: "row" },
        el("button", {
          type: "button",
          text: String(k + 1),
          title: `go to solution ${k + 1}: ${coordinatesText(app, q)}`,
          "data-q": Array.from(q).join(","),
          onclick: () => travel(store.get("q"), q),
        }),
      ),
      ["A", "B"].map((name) => el("td", {}, radio(name, k))),
      labels.some(Boolean) ? el("td", { class: "label", text: labels[k] }) : null,
      shown.map((i) => el("td", { text: value(q[i], model.coordinates[i]), "data-value": String(q[i]) })),
    );
  const heads = ["", "A", "B", ...(labels.some(Boolean) ? ["branch"] : []), ...names];
  return el(
    "table",
    { class: "values branches", "aria-label": "solutions" },
    el(
      "thead",
      {},
      el(
        "tr",
        {},
        heads.map((text) => el("th", { scope: "col", text })),
      ),
    ),
    el("tbody", {}, found.map(row)),
  );
}

// What tells the solutions of an arm apart: the side to which it reaches, its elbow, its wrist. Words that all of them
// share are left out.
export function labelsOf(app, found, frame) {
  const marks = found.map(({ q }) => branchOf(app, q, frame));
  const words = { shoulder: ["front", "back"], elbow: ["elbow up", "elbow down"], wrist: ["wrist +", "wrist \u2212"] };
  const telling = Object.keys(words).filter((name) => new Set(marks.map((mark) => mark[name])).size > 1);
  return marks.map((mark) =>
    telling
      .filter((name) => mark[name])
      .map((name) => words[name][mark[name] > 0 ? 0 : 1])
      .join(", "),
  );
}

// { shoulder, elbow, wrist }: signs, 0 where a chain has no such part or is just between the two.
function branchOf(app, q, frame) {
  const { kernel, model, data } = app;
  const size = data.scene.size;
  const chain = chainTo(model, frame.body).filter((i) => model.joints[i].v[1] > model.joints[i].v[0]);
  if (chain.length < 2 || chain.some((i) => !model.joints[i].axial)) return { shoulder: 0, elbow: 0, wrist: 0 };
  const poses = kernel.poses(q).slice();
  const J = frameJacobian(kernel, q, frame);
  const lines = chain.map((i) => ({
    at: place(poses.subarray(16 * i, 16 * i + 16)),
    along: [0, 1, 2].map((r) => J[r * model.nv + model.joints[i].v[0]]), // zero for a joint that slides
  }));
  const last = chain.length > 3 ? lines.slice(-3) : [];
  const center = last.map(({ at }) => at).find((p) => last.every((line) => distance(p, line) < APART * size));
  const end = center || place(framePose(kernel, q, frame));
  const arm = center ? lines.slice(0, -3) : lines;
  const facing = center ? dot(cross(arm[1]?.along ?? [0, 0, 0], arm[0].along), sub(end, arm[0].at)) : 0;
  return {
    wrist: center ? sign(dot(cross(last[0].along, last[1].along), last[2].along), 1) : 0,
    elbow: elbowOf(arm, end, model.gravity, size),
    shoulder: sign(facing, size),
  };
}

const chainTo = (model, body) => (body < 0 ? [] : [...chainTo(model, model.bodies[body].parent), body]);
const sign = (x, size) => (Math.abs(x) < APART * size ? 0 : Math.sign(x));
const distance = (p, { at, along }) =>
  Math.hypot(...along) > 0.5 ? Math.hypot(...cross(sub(p, at), along)) : Infinity;

// Whether the elbow, the joint between the longest pair of links, is above the line from the joint before it to the
// end; without gravity in that plane, on which side of it.
function elbowOf(arm, end, gravity, size) {
  let [best, length] = [-1, 1e-3 * size];
  for (let k = 1; k < arm.length; k++) {
    const shorter = Math.min(distance(arm[k - 1].at, arm[k]), distance(end, arm[k]));
    if (shorter > length && shorter < Infinity) [best, length] = [k, shorter];
  }
  if (best < 0) return 0;
  const from = arm[best - 1].at;
  const line = unit(sub(end, from));
  const out = sub(arm[best].at, from);
  const side = sub(out, scale(dot(out, line), line));
  const height = -dot(side, unit(gravity));
  return sign(height, size) || sign(dot(cross(line, out), arm[best].along), size);
}

// The solutions as lines from joint to joint, with their numbers at the joint farthest from both ends.
/** @param {import("./app.js").App} app */
function ghostsOf(app, found, frame) {
  const { kernel, model, stage } = app;
  const chain = chainTo(model, frame.body);
  const color = [...stage.palette.accent.slice(0, 3), 0.55];
  const made = found.map(({ q }, k) => {
    const poses = kernel.poses(q).slice();
    const points = [
      ...chain.map((i) => place(poses.subarray(16 * i, 16 * i + 16))),
      place(framePose(kernel, q, frame)),
    ];
    const far = (p) => Math.min(...[points[0], points.at(-1)].map((end) => Math.hypot(...sub(p, end))));
    const elbow = points.reduce((best, p) => (far(p) > far(best) + APART ? p : best), points[1]);
    const pairs = points.slice(1).flatMap((p, i) => [...points[i], ...p]);
    return { line: { points: new Float32Array(pairs), color, width: 2.5 }, label: { text: String(k + 1), at: elbow } };
  });
  return { lines: made.map((x) => x.line), labels: made.map((x) => x.label) };
}
