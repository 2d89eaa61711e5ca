// Another structure of a mechanism: links added, removed, moved, other joints. Python makes its functions, so that this
// works in the studio alone.

import { numberControl } from "./controls.js";
import { inForm, shift, turn } from "./dh.js";
import { el, section } from "./elements.js";
import { product } from "./poses.js";
import { buildParts } from "./structure_parts.js";

const MOST = 64; // as studio/actions/model.py
const ROD = { mass: 1, length: 0.3, thick: 0.02 }; // a new link: [kg], [m], [m]

// A slender rod along the x axis of its row, from its joint to the next one.
function rod(name, form, length = ROD.length) {
  const { mass, thick } = ROD;
  const across = (mass * length ** 2) / 12;
  return {
    name,
    form,
    joint: "revolute",
    theta: 0,
    b: 0,
    a: form === "standard" ? length : 0,
    alpha: 0,
    gamma: 0,
    epsilon: 0,
    mass,
    com: [form === "standard" ? -length / 2 : length / 2, 0, 0],
    inertia: [(mass * thick ** 2) / 8, across, across, 0, 0, 0],
  };
}

// Templates of new robots: calls of Python for a number of links.
const TEMPLATES = {
  "planar arm": (n) => chain(n, (k) => rod(`link${k + 1}`, "standard", k ? 0.25 : 0.3), [0, -9.81, 0]),
  "spatial arm": (n) =>
    chain(n, (k) => {
      const joint = k % 3 === 0 ? { b: 0.2, a: 0 } : { b: 0, a: 0.3 }; // a shoulder, an upper arm and a forearm, again
      const made = rod(`link${k + 1}`, "standard", joint.a || 0.2);
      const along = joint.a ? {} : { com: [0, -0.1, 0], inertia: [1, 0, 2, 3, 4, 5].map((i) => made.inertia[i]) };
      return { ...made, ...joint, ...along, alpha: joint.a ? (k % 3 === 2 ? -Math.PI / 2 : 0) : Math.PI / 2 };
    }),
  "Cartesian arm": (n) =>
    chain(n, (k) => ({ ...rod(`link${k + 1}`, "standard"), joint: "prismatic", a: 0, alpha: Math.PI / 2, b: 0.2 })),
  "branched tree": (n) => ({ action: "reshape", args: { change: { do: "new", template: "tree", links: n } } }),
  "ring of bars": (n) => ({ action: "reshape", args: { change: { do: "new", template: "ring", links: n } } }),
  "one link": () => ({ action: "reshape", args: { change: { do: "new", template: "link" } } }),
};
const LONGEST = 30; // links of a template

function chain(n, row, gravity = [0, 0, -9.81]) {
  const rows = Array.from({ length: n }, (_, k) => plainRow(row(k), k, null));
  return { action: "build", args: { name: "robot", convention: "standard", gravity, rows } };
}

function plainRow(row, i, joint) {
  const { name, joint: kind, a, alpha, b, theta, mass, com, inertia } = row;
  const bounds = joint
    ? { lower: joint.lower, upper: joint.upper, velocity: joint.velocity[0], effort: joint.effort[0] }
    : {};
  const limits = Object.fromEntries(Object.entries(bounds).filter(([, x]) => x !== undefined && x !== null));
  const losses = joint
    ? Object.fromEntries(
        ["damping", "friction", "armature"].filter((key) => joint[key].length).map((key) => [key, joint[key][0]]),
      )
    : {};
  return {
    ...(name === `link${i + 1}` ? {} : { name }),
    joint: kind,
    a,
    alpha,
    b,
    theta,
    mass,
    com: [...com],
    inertia: [...inertia],
    ...(Object.keys(limits).length ? { limits } : {}),
    ...losses,
  };
}

// The arguments of the action `build` for a table. Rows keep limits and losses of joints that the mechanism has
// already.
export function buildArguments({ model, store }, table) {
  const made = table.base ? inForm(table, "modified") : table;
  const index = new Map(model.bodies.map((body, i) => [body.name, i]));
  const jointOf = (row) => {
    const i = index.get(row.name);
    if (i === undefined || model.joints[i].kind !== row.joint) return null;
    const c = model.coordinates[model.joints[i].q[0]];
    return { ...model.joints[i], lower: c?.lower, upper: c?.upper };
  };
  const end = made.form === "modified" && made.end;
  const frames = model.frames.filter(
    (f) =>
      f.body >= 0 &&
      f.name !== "tool" &&
      !/^frame_\d+$/.test(f.name) &&
      made.rows.some((row) => row.name === model.bodies[f.body].name),
  );
  return {
    name: model.name,
    convention: made.form,
    gravity: [...made.gravity],
    rows: made.rows.map((row, i) => plainRow(row, i, jointOf(row))),
    ...(end ? { tool: matrix(product(shift(0, end.a), turn(0, end.alpha))) } : {}),
    frames: frames.map((f) => ({
      name: f.name,
      body: model.bodies[f.body].name,
      translation: [f.pose[3], f.pose[7], f.pose[11]],
      rotation: [0, 4, 8].map((k) => Array.from(f.pose.slice(k, k + 3))),
    })),
    q: made.rows.flatMap((row) => {
      const i = index.get(row.name);
      return row.joint === "fixed"
        ? []
        : [i === undefined || model.joints[i].kind !== row.joint ? 0 : store.get("q")[model.joints[i].q[0]]];
    }),
  };
}

const matrix = (T) => [0, 4, 8, 12].map((k) => Array.from(T.slice(k, k + 4)));

// Returns { element, fresh, refresh }; `fresh` makes a new robot.
export function buildStructure(app) {
  const { store, data } = app;
  const isTable = data.table.serial;
  const message = el("p", { class: "hint", role: "status" });
  const say = (text) => {
    message.textContent = text;
  };
  const rebuild = (rows, picked) =>
    app.restructure({ action: "build", args: buildArguments(app, { ...store.get("table"), rows }) }, { picked, say });
  const rows = () => store.get("table").rows;
  const unused = (taken) => {
    for (let k = taken.length + 1; ; k++) if (!taken.some((row) => row.name === `link${k}`)) return `link${k}`;
  };
  const button = (text, title, action) => el("button", { type: "button", text, title, onclick: action });
  const inserted = (all, at) => {
    const { form } = store.get("table");
    return [...all.slice(0, at), rod(unused(all), form), ...all.slice(at)];
  };
  const swapped = (i, j) => rows().map((row, k) => rows()[k === i ? j : k === j ? i : k]);
  const add = button("Add a link", "a link after the picked one", () =>
    rebuild(inserted(rows(), app.row() + 1), app.row() + 1),
  );
  const remove = button("Remove", "", () =>
    rebuild(
      rows().filter((_, k) => k !== app.row()),
      Math.max(0, app.row() - 1),
    ),
  );
  const up = button("Up", "", () => rebuild(swapped(app.row(), app.row() - 1), app.row() - 1));
  const down = button("Down", "", () => rebuild(swapped(app.row(), app.row() + 1), app.row() + 1));
  const kind = el(
    "select",
    {
      "aria-label": "kind of the joint",
      onchange: () =>
        rebuild(
          rows().map((row, k) => (k === app.row() ? { ...row, joint: kind.value } : row)),
          app.row(),
        ),
    },
    ["revolute", "prismatic", "fixed"].map((name) => el("option", { value: name, text: name })),
  );
  const count = numberControl({
    store,
    label: "links",
    title: "number of links",
    value: rows().length,
    lower: 1,
    upper: MOST,
    slider: false,
    text: String,
    change: (n) =>
      Number.isInteger(n)
        ? void rebuild(ofLength(rows(), n, unused), Math.min(app.row(), n - 1))
        : "Type a whole number.",
  });
  const template = el(
    "select",
    { "aria-label": "template of a new robot", title: "what a new robot begins with" },
    Object.keys(TEMPLATES).map((name) => el("option", { value: name, text: name })),
  );
  const links = numberControl({
    store,
    label: "with links",
    title: "links of a new robot",
    value: 2,
    lower: 1,
    upper: LONGEST,
    slider: false,
    text: String,
    change: (n) => (Number.isInteger(n) ? "" : "Type a whole number."),
  });
  const fresh = [
    el(
      "div",
      { class: "buttons" },
      button("New robot", "a robot by this template, to begin with", () =>
        app.restructure(TEMPLATES[template.value](links.now()), { picked: 0, say }),
      ),
      template,
    ),
    links,
  ];
  const parts = data.kernel?.editable
    ? buildParts(app, (call, picked, say) => app.restructure(call, { picked, say }))
    : { element: null, refresh() {} };
  const element = section(
    "Structure",
    ...(isTable
      ? [
          el("div", { class: "buttons" }, add, remove, up, down),
          el("label", { class: "control turns" }, el("span", { class: "name", text: "joint" }), kind),
          count,
        ]
      : []),
    data.kernel?.editable
      ? null
      : el("p", { class: "hint", text: "The structure of a mechanism of this size is changed in its file." }),
    message,
  );
  return {
    element: [element, parts.element].filter(Boolean),
    fresh,
    refresh() {
      parts.refresh();
      if (!isTable) return;
      const [i, name] = [app.row(), rows()[app.row()].name];
      [remove.title, up.title, down.title] = [
        `remove ${name}`,
        `${name} before the one above`,
        `${name} after the one below`,
      ];
      remove.disabled = rows().length < 2;
      up.disabled = i === 0;
      down.disabled = i === rows().length - 1;
      kind.value = rows()[i].joint;
    },
  };
}

// The first links of a table, or more links like the last one.
function ofLength(rows, n, unused) {
  const out = rows.slice(0, n);
  while (out.length < n) out.push({ ...out[out.length - 1], name: unused(out) });
  return out;
}
