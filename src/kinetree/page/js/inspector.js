// The inspector: numbers of the picked body and its joint, and the list of bodies to pick and to hide.

import { breakable, el, section, valueTable } from "./elements.js";
import { oncePerFrame } from "./frames.js";
import { massFrameOf } from "./names.js";
import { neat, sharedUnit, short, shownUnit } from "./units.js";

export function buildInspector(host, app) {
  const { model, store, kernel } = app;
  const details = el("div", { class: "details" });
  const list = el("ul", { class: "bodies" });
  const rows = model.bodies.map((body, i) => {
    const name = el(
      "button",
      {
        type: "button",
        class: "pick",
        title: `pick ${body.name}`,
        onclick: () => pick(store.get("picked") === i ? -1 : i),
      },
      swatch(body.color),
      el("span", {}, breakable(body.name)),
    );
    const eye = el("button", {
      type: "button",
      class: "eye",
      "aria-pressed": "true",
      title: `hide or show ${body.name}`,
      "aria-label": `hide or show ${body.name}`,
      onclick: () => hide(i),
    });
    const row = el("li", {}, name, eye);
    row.style.paddingLeft = `${Math.min(8, depth(model, i)) * 10}px`;
    return Object.assign(row, { name, eye });
  });
  list.append(...rows);
  host.append(details, section("Bodies", list));

  function pick(i) {
    store.set({ picked: i });
  }
  function hide(i) {
    const hidden = new Set(store.get("hidden"));
    if (!hidden.delete(i)) hidden.add(i);
    store.set({ hidden }, { undo: "hide a body" });
  }
  function refreshList() {
    rows.forEach((row, i) => {
      row.name.setAttribute("aria-pressed", String(store.get("picked") === i));
      row.eye.setAttribute("aria-pressed", String(!store.get("hidden").has(i)));
    });
  }
  const refresh = oncePerFrame(() => details.replaceChildren(...detailsOf(app)));
  store.on(["picked", "hidden"], refreshList);
  store.on(["picked", "q", "qd", "units", "parameters", "motion", ...(app.table ? ["table"] : [])], refresh);
  refreshList();
  refresh();
  if (kernel) store.on(["time"], refresh);
}

function detailsOf(app) {
  const { model, store, kernel } = app;
  const i = store.get("picked");
  if (i < 0) {
    const rows = [
      ["bodies", String(model.bodies.length)],
      ["velocities", String(model.nv)],
    ];
    rows.push(["mass", given(model.bodies.reduce((s, b) => s + b.mass, 0)), "kg"]);
    if (kernel?.has("kinetic_energy", "potential_energy")) {
      const e = kernel.energies(store.get("q"), store.get("qd"));
      rows.push(
        ["kinetic energy", short(e.kinetic), "J", e.kinetic],
        ["potential energy", short(e.potential), "J", e.potential],
      );
      if (e.springs !== undefined) rows.push(["energy of springs", short(e.springs), "J", e.springs]);
    }
    if (kernel?.has("center_of_mass")) {
      const c = kernel.call("center_of_mass", { q: store.get("q") });
      ["x", "y", "z"].forEach((axis, k) => rows.push([`center of mass ${axis}`, short(c[k]), "m", c[k]]));
    }
    if (model.closed && kernel)
      rows.push(["gap of loops", short(kernel.gap(store.get("q"))), sharedUnit(model.equations.map((e) => e.unit))]);
    return [
      section(
        model.name,
        model.description ? el("p", { class: "hint long", text: model.description, title: model.description }) : null,
        valueTable(rows),
      ),
      el("p", { class: "hint", text: "Click a body to see its numbers." }),
    ];
  }
  const body = massesOf(app, i);
  const joint = model.joints[i];
  const T = app.matricesNow()[i];
  const rows = app.kernel
    ? app.kernel.poses(store.get("q")).slice(16 * i, 16 * i + 12)
    : Float64Array.from([0, 1, 2].flatMap((r) => [0, 1, 2, 3].map((c) => T[4 * c + r])));
  const jointRows = [["kind", joint.kind]];
  const units = store.get("units");
  const number = (name, x, unit) => {
    const shown = shownUnit(unit, units);
    return [name, short(x * shown.factor), shown.unit, x];
  };
  if (store.get("q").length) {
    for (let k = joint.q[0]; k < joint.q[1]; k++)
      jointRows.push(
        number(`q ${tail(model.coordinates[k].label, joint)}`, store.get("q")[k], model.coordinates[k].unit),
      );
    for (let k = joint.v[0]; k < joint.v[1]; k++)
      jointRows.push(
        number(`qd ${tail(model.velocities[k].label, joint)}`, store.get("qd")[k], model.velocities[k].unit),
      );
  }
  return [
    section(
      body.name,
      valueTable([
        ["mass", given(body.mass), "kg", body.mass],
        ...["x", "y", "z"].map((axis, k) => [`center ${axis}`, given(body.com[k]), "m", body.com[k]]),
        ...["xx", "yy", "zz", "xy", "yz", "zx"].map((axis, k) => [
          `inertia ${axis}`,
          given(body.inertia[k]),
          "kg m\u00b2",
          body.inertia[k],
        ]),
      ]),
      el("p", { class: "hint", text: `Center of mass, and inertia about it, ${body.where}.` }),
    ),
    section(`Joint ${joint.name}`, valueTable(jointRows)),
    section("Pose in the ground", poseTable(rows)),
  ];
}

// Masses of a body as the table has them, where there is a table: in one frame everywhere.
function massesOf({ store, table, model }, i) {
  const { name } = model.bodies[i];
  const row = table ? store.get("table").rows[i] : { ...model.bodies[i], form: "placement" };
  return { name, mass: row.mass, com: row.com, inertia: row.inertia, where: massFrameOf(row, i) };
}

// A number of the model, which stays while the mechanism moves: five digits, no trailing zeros, no rounding errors of
// zeros.
const given = (x) => (Math.abs(x) < 1e-14 ? "0" : neat(Number(x.toPrecision(5))));

// The last word of a label: "x" of "base.x"; empty for a joint with one coordinate.
const tail = (label, joint) => (label === joint.name ? "" : label.slice(joint.name.length + 1));

const NOTHING = 1e-9; // entries of rotations and places [m] that are rounding, in tables of four decimals

export function poseTable(rows) {
  return el(
    "table",
    { class: "matrix", "aria-label": "rotation and position" },
    el(
      "tbody",
      {},
      [0, 1, 2].map((r) =>
        el(
          "tr",
          {},
          [0, 1, 2, 3].map((c) =>
            el("td", {
              text: short(Math.abs(rows[4 * r + c]) < NOTHING ? 0 : rows[4 * r + c]),
              "data-value": String(rows[4 * r + c]),
              class: c === 3 ? "position" : "",
            }),
          ),
          el("th", { class: "unit", text: "m", title: "the last column is a position" }),
        ),
      ),
    ),
  );
}

export function swatch(color) {
  const made = el("i", { class: "dot" });
  made.style.background = color;
  return made;
}

function depth(model, i) {
  return model.bodies[i].parent < 0 ? 0 : 1 + depth(model, model.bodies[i].parent);
}
