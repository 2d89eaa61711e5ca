// The structure of any mechanism, part by part: bodies with their joints in a tree, loops, springs and frames. Python
// makes the changed mechanism (studio/actions/structure.py), so that this works in the studio alone.

import { numberControl } from "./controls.js";
import { el, section } from "./elements.js";
import { tomlText } from "./model_files.js";
import { place } from "./poses.js";

const JOINTS = ["revolute", "prismatic", "fixed", "spherical", "universal", "cylindrical", "planar", "helical", "free"];
const LOOPS = [
  "revolute",
  "spherical",
  "prismatic",
  "rod",
  "cylindrical",
  "universal",
  "planar",
  "fixed",
  "point_on_line",
];
const SHAPES = {
  // sizes of the shapes of a body: [name, title, first value]
  rod: [["length", 0.3]],
  box: [
    ["length", 0.3],
    ["width", 0.1],
    ["height", 0.1],
  ],
  cylinder: [
    ["length", 0.3],
    ["radius", 0.03],
  ],
  sphere: [["radius", 0.1]],
  point: [["length", 0.3]],
};
const GROUND = "ground";
const LEAST = 1e-9; // of sizes and masses, as Python has it
const MOST = 1e9;

// The call that makes the mechanism with one change of its structure, with the present numbers and at the present pose.
export const reshaped = (app, change = {}) => ({
  action: "reshape",
  args: { change, model: tomlText(app), q: Array.from(app.store.get("q")) },
});

// A list of values to choose from: { element, value, set(values) }.
function picker(label, values, change = (_value) => {}) {
  const element = el("select", { "aria-label": label, title: label, onchange: () => change(element.value) });
  const fill = (names) => element.replaceChildren(...names.map((name) => el("option", { value: name, text: name })));
  fill(values);
  return {
    element,
    fill,
    get value() {
      return element.value;
    },
    set value(x) {
      element.value = x;
    },
  };
}

const line = (name, ...parts) => el("div", { class: "pickers" }, el("span", { class: "name", text: name }), parts);
const button = (text, title, action) => el("button", { type: "button", text, title, onclick: action });
const buttons = (...all) => el("div", { class: "buttons" }, all);
const folded = (title, ...parts) => el("details", { class: "fold" }, el("summary", { text: title }), parts);
const three = (boxes) => el("div", { class: "two three" }, boxes);
const positive = { lower: LEAST, upper: MOST };

// A box for a number that is read by now().
const number = ({ store }, label, unit, value, options = {}) =>
  numberControl({ store, label, unit, value, slider: false, change: () => {}, ...options });

// Numbers of a table of boxes.
const read = (boxes) => Object.fromEntries(Object.entries(boxes).map(([name, box]) => [name, box.now()]));

// A point: { boxes, read(), at(body) }, where `at` gives it the far end of a body.
function pointBoxes(app, title) {
  const boxes = ["x", "y", "z"].map((axis) =>
    number(app, axis, "m", 0, { title: `${title} ${axis}`, lower: -MOST, upper: MOST }),
  );
  return {
    boxes,
    read: () => boxes.map((box) => box.now()),
    at: (body) => endOf(app.model, body).forEach((x, k) => boxes[k].set(x)),
  };
}

// A shape with its sizes, and its mass or density: { element, read() }.
function shapeBoxes(app, what) {
  const sizes = el("div", {});
  let boxes = {};
  const kind = picker(`shape of ${what}`, Object.keys(SHAPES), show);
  const weigh = picker(`weight of ${what} by`, ["mass", "density"], show);
  function show() {
    const rows = SHAPES[kind.value].map(([name, x]) => [name, "m", boxes[name]?.now() ?? x]);
    rows.push(weigh.value === "mass" ? ["mass", "kg", 1] : ["density", "kg/m^3", 2700]);
    const made = ([name, unit, x]) => [name, number(app, name, unit, x, { title: `${name} of ${what}`, ...positive })];
    boxes = Object.fromEntries(rows.map(made));
    sizes.replaceChildren(...Object.values(boxes));
  }
  show();
  return {
    element: [line("shape", kind.element, weigh.element), sizes],
    read: () => ({ kind: kind.value, ...read(boxes) }),
  };
}

// Two ends of a loop or a spring: { element, read() }.
function endBoxes(app, what) {
  const names = app.model.bodies.map((body) => body.name);
  const side = (which, all, first) => {
    const at = pointBoxes(app, `${which} end of ${what}`);
    const on = picker(`${which} body of ${what}`, all, (name) => at.at(name));
    on.value = first;
    at.at(first);
    return { at, on };
  };
  const a = side("first", [...names, GROUND], names[names.length - 1]);
  const b = side("second", [GROUND, ...names], GROUND);
  return {
    element: [line("from", a.on.element), three(a.at.boxes), line("to", b.on.element), three(b.at.boxes)],
    read: () => ({ a: a.on.value, at_a: a.at.read(), b: b.on.value, at_b: b.at.read() }),
  };
}

function addForm(app, give) {
  const bodies = app.model.bodies.map((body) => body.name);
  const at = pointBoxes(app, "place of the new body");
  const turns = ["roll", "pitch", "yaw"].map((name) =>
    number(app, name, "rad", 0, { title: `${name} of the new body` }),
  );
  const shape = shapeBoxes(app, "the new body");
  const parent = picker("parent of the new body", [GROUND, ...bodies], (name) => at.at(name));
  const kind = picker("joint of the new body", JOINTS);
  const axis = picker("axis of the new joint", ["z", "x", "y"]);
  parent.value = bodies[bodies.length - 1];
  at.at(parent.value);
  const change = () => ({
    do: "add",
    parent: parent.value,
    kind: kind.value,
    axis: axis.value,
    at: at.read(),
    rpy: turns.map((box) => box.now()),
    shape: shape.read(),
  });
  return folded(
    "Add a body",
    line("carried by", parent.element),
    line("joint", kind.element, axis.element),
    three(at.boxes),
    turns,
    shape.element,
    buttons(button("Add the body", "a body of this shape on this joint", () => give(change(), bodies.length))),
  );
}

// The picked body: its joint, what carries it, its shape; { element, refresh }.
function changeForm(app, give) {
  const { model } = app;
  const own = () => model.bodies[app.row()].name;
  const turned = () => give({ do: "joint", body: own(), kind: joint.value, axis: about.value });
  const joint = picker("kind of the joint of the body", JOINTS, turned);
  const about = picker("axis of the joint of the body", ["z", "x", "y"], turned);
  const carrier = picker("what carries the body", [GROUND, ...model.bodies.map((body) => body.name)], (name) =>
    give({ do: "attach", body: own(), parent: name, at: endOf(model, name) }),
  );
  const shape = shapeBoxes(app, "the body");
  const remove = button("Remove the body", "", () => give({ do: "remove", body: own() }, 0));
  const use = button("Use this shape", "mass, center of mass and inertia of this shape", () =>
    give({ do: "shape", body: own(), shape: shape.read() }),
  );
  const title = el("summary", {});
  const element = el(
    "details",
    { class: "fold" },
    title,
    line("joint", joint.element, about.element),
    line("carried by", carrier.element),
    shape.element,
    buttons(use, remove),
  );
  const refresh = () => {
    const [body, moving] = [model.bodies[app.row()], model.joints[app.row()]];
    title.textContent = `Change ${body.name}`;
    remove.title = `${body.name}, and what it carries`;
    joint.fill(JOINTS.includes(moving.kind) ? JOINTS : [...JOINTS, moving.kind]);
    joint.value = moving.kind;
    about.value = axisOf(moving);
    carrier.value = body.parent < 0 ? GROUND : model.bodies[body.parent].name;
  };
  return { element, refresh };
}

function loopForm(app, give) {
  const ends = endBoxes(app, "the loop");
  const kind = picker("joint that closes the loop", LOOPS, (name) => {
    length.hidden = name !== "rod";
  });
  const axis = picker("axis of the joint that closes the loop", ["z", "x", "y"]);
  const length = number(app, "length", "m", 0.3, { title: "length of the rod", ...positive });
  length.hidden = true;
  const change = () => ({ do: "close", ...ends.read(), kind: kind.value, axis: axis.value, length: length.now() });
  return folded(
    "Close a loop",
    ends.element,
    line("joint", kind.element, axis.element),
    length,
    buttons(button("Close the loop", "a joint between both points, which come together", () => give(change()))),
  );
}

function springForm(app, give) {
  const ends = endBoxes(app, "the spring");
  const boxes = {
    stiffness: number(app, "stiffness", "N/m", 100, { title: "stiffness of the spring", ...positive }),
    damping: number(app, "damping", "N s/m", 1, { title: "damping of the spring", ...positive }),
    free_length: number(app, "length", "m", 0.3, { title: "length of the spring without force", ...positive }),
  };
  const change = () => ({ do: "spring", ...ends.read(), ...read(boxes) });
  return folded(
    "Add a spring",
    ends.element,
    Object.values(boxes),
    buttons(button("Add the spring", "a spring and a damper between both points", () => give(change()))),
  );
}

function frameForm(app, give) {
  const place = pointBoxes(app, "place of the frame");
  const name = el("input", { type: "text", class: "number name", "aria-label": "name of the frame", value: "" });
  const change = () => {
    const text = name.value.trim();
    return { do: "frame", body: app.model.bodies[app.row()].name, at: place.read(), ...(text ? { name: text } : {}) };
  };
  return folded(
    "Add a frame",
    line("name", name),
    three(place.boxes),
    buttons(button("Add the frame", "a frame on the picked body", () => give(change()))),
  );
}

/**
 * Controls of parts: { element, refresh }. rebuild(call, picked, say) opens what a call makes, or says why not.
 * @param {import("./app.js").App} app
 * @param {(call: object, picked: number, say: (text: string) => void) => void} rebuild
 */
export function buildParts(app, rebuild) {
  const { model } = app;
  const fault = el("p", { class: "error", role: "alert", hidden: true });
  const say = (text) => {
    fault.textContent = text.slice(0, 1).toUpperCase() + text.slice(1);
    fault.hidden = !text;
  };
  function give(change, picked = app.row()) {
    const form = document.activeElement?.closest(".fold") ?? element;
    form.append(fault);
    const wrong = form.querySelector(".control .error:not([hidden])");
    if (!wrong) return rebuild(reshaped(app, change), picked, say);
    wrong.setAttribute("hidden", "");
    say(`Nothing was changed. ${wrong.textContent}`);
  }
  const frames = model.frames.filter((f) => f.body >= 0 && !/(^frame_\d+|_end|_frame)$/.test(f.name));
  const list = [...model.loops, ...model.forces, ...frames].map(({ name }) =>
    button(`Remove ${name}`, `the mechanism without ${name}`, () => give({ do: "drop", part: name })),
  );
  const change = changeForm(app, give);
  const forms = [addForm(app, give), change.element, loopForm(app, give), springForm(app, give), frameForm(app, give)];
  const element = section("Bodies, loops, springs, frames", forms, buttons(list));
  return { element, refresh: change.refresh };
}

// The far end of a body [m]: its frame NAME_end, else the last frame of a row of a table; zeros for the ground.
function endOf(model, name) {
  const body = model.bodies.findIndex((b) => b.name === name);
  const frames = model.frames.filter((f) => f.body === body && body >= 0);
  const end = frames.find((f) => f.name === `${name}_end`) || frames.find((f) => /^frame_\d+$|^tool$/.test(f.name));
  return end ? place(end.pose) : [0, 0, 0];
}

// The letter of the axis of a joint that has one: the third column of its axes.
function axisOf({ axes }) {
  const along = axes.map((row) => Math.abs(row[2]));
  return "xyz"[along.indexOf(Math.max(...along))];
}
