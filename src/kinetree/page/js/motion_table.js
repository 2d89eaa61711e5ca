// The table of the planned motion: a column per position, from, via and to, with joint values and the pose of a frame,
// typed or taken from the picture; the law between them, the duration, and files. All modes show the same.

import { numberControl } from "./controls.js";
import { readMotion } from "./csv_motion.js";
import { choice, el } from "./elements.js";
import { framePose, solvePose } from "./inverse_kinematics.js";
import { keepsRotation } from "./manipulability.js";
import { KINDS, planOf, shortestDuration, WITH_RATES } from "./motion_plan.js";
import { shortLabels } from "./names.js";
import { anglesOf, poseOfAngles } from "./poses.js";
import { neat, short, shownUnit } from "./units.js";

const TITLES = {
  cycloid: "accelerations begin and end at zero",
  cubic: "a polynomial of degree 3, at rest at both ends, or with given velocities there",
  quintic: "a polynomial of degree 5, at rest at both ends, or with given velocities there",
  trapezoid: "a third of the time each: faster, constant, slower",
  spline: "a cubic spline through all positions",
  line: "the frame moves along straight lines",
  arc: "the frame moves along an arc through the via point",
  file: "a CSV file of joints, or of a path in space",
};
const POSE = ["x", "y", "z", "roll", "pitch", "yaw"];
const POSITION = [0, 0, 0, 1, 1, 1];
const MOST = 8; // via points

const button = (text, title, action) => el("button", { type: "button", text, title, onclick: action });

// Returns { element, refresh }.
export function buildMotionTable(app) {
  const plan = planOf(app);
  const { settings, change, here } = plan;
  const kinds = choice(KINDS, {
    label: "kind of motion",
    value: settings().kind,
    titles: TITLES,
    change: (kind) => change({ kind }, "kind of motion"),
  });
  const fault = el("p", { class: "error", role: "alert", hidden: true });
  const table = buildColumns(app, plan);
  const duration = buildDuration(app, plan);
  const rates = buildRates(app, plan);
  const add = button("Add via here", "pass the present position on the way", () => {
    const { via } = settings();
    const last = via[via.length - 1]?.u ?? 0;
    change({ via: [...via, { u: (1 + last) / 2, q: here() }] }, "add a via point");
  });
  const byPositions = el(
    "div",
    {},
    table.element,
    el(
      "div",
      { class: "buttons" },
      button("From here", "begin at the present position", () =>
        change({ q0: here() }, "start of the motion", "start"),
      ),
      add,
      button("To here", "end at the present position", () => change({ q1: here() }, "end of the motion", "end")),
    ),
    rates.element,
    duration.element,
  );
  const file = buildFile(app, plan);
  const refresh = () => {
    const { kind, via } = settings();
    kinds.set(kind);
    file.hidden = kind !== "file";
    byPositions.hidden = kind === "file";
    add.disabled = via.length >= MOST;
    table.refresh();
    duration.refresh();
    rates.refresh();
    const { fault: why = "" } = plan.made();
    fault.hidden = !why;
    fault.textContent = why;
  };
  return { element: [kinds, fault, byPositions, file], refresh };
}

// Columns of positions: { name, get(), put(q, undo), share }, with the part of the duration at which each is passed.
function columnsOf({ settings, change }) {
  const via = (i) => ({
    name: `via ${i + 1}`,
    share: () => settings().via[i].u,
    get: () => settings().via[i].q,
    put: (q, undo) => change({ via: settings().via.map((old, j) => (j === i ? { ...old, q } : old)) }, undo),
    remove: () => change({ via: settings().via.filter((_, j) => j !== i) }, "remove a via point"),
  });
  return [
    { name: "from", share: () => 0, get: () => settings().q0, put: (q, undo) => change({ q0: q }, undo, "start") },
    ...settings().via.map((_, i) => via(i)),
    { name: "to", share: () => 1, get: () => settings().q1, put: (q, undo) => change({ q1: q }, undo, "end") },
  ];
}

// Joint values of all columns, and the poses of the frame below them.
function buildColumns(app, plan) {
  const { settings, change } = plan;
  const box = el("div", { class: "dh" });
  const frame = el(
    "select",
    {
      "aria-label": "frame of the motion",
      title: "the frame whose poses are shown, and which moves along a path",
      onchange: () => change({ frame: frame.value }, "frame of the motion"),
    },
    plan.frames.map((f) => el("option", { value: f.name, text: f.name })),
  );
  let [count, shows] = [0, []];
  function build() {
    const columns = columnsOf(plan);
    shows = [];
    const rows = [
      row("time", "s", timeCells(app, plan, columns), shows, app),
      ...jointRows(app, columns, shows),
      el(
        "tr",
        {},
        el("td", { colspan: String(columns.length + 1) }, el("label", { class: "hint" }, "pose of ", frame)),
      ),
      ...poseRows(app, plan, columns, shows),
    ];
    const heads = columns.map((column) => headOf(app, plan, column));
    box.replaceChildren(
      el(
        "table",
        { class: "lines", "aria-label": "positions of the motion" },
        el("thead", {}, el("tr", {}, el("td", {}), heads)),
        el("tbody", {}, rows.flat()),
      ),
    );
    count = columns.length;
  }
  return {
    element: box,
    refresh() {
      if (count !== settings().via.length + 2) build();
      frame.value = plan.frame().name;
      for (const show of shows) show();
    },
  };
}

// The name of a column, which shows its position; a via point can be removed.
const headOf = (app, plan, { name, share, remove }) =>
  el(
    "th",
    { scope: "col" },
    el("button", {
      type: "button",
      class: "pick",
      text: name,
      title: `show the position ${name}`,
      onclick: () => app.player.seek(share() * plan.settings().duration),
    }),
    remove
      ? el("button", {
          type: "button",
          class: "quiet",
          text: "\u00d7",
          title: `remove ${name}`,
          "aria-label": `remove ${name}`,
          onclick: remove,
        })
      : null,
  );

// A row of cells, and one below it for what is wrong with them; `shows` gets what shows their present numbers.
function row(name, unit, cells, shows, { store }) {
  const head = el("th", { scope: "row" });
  shows.push(() => {
    head.textContent = `${name} [${shownUnit(unit, store.get("units")).unit}]`;
  });
  for (const { show } of cells) if (show) shows.push(show);
  return [
    el(
      "tr",
      { class: "line" },
      head,
      cells.map(({ element }) => el("td", {}, element)),
    ),
    el(
      "tr",
      { class: "notes" },
      el(
        "td",
        { colspan: String(cells.length + 1) },
        cells.flatMap(({ note }) => note ?? []),
      ),
    ),
  ];
}

function cellOf({ store }, title, unit, get, change, bounds = {}) {
  const options = { store, label: title, title, unit, value: get(), slider: /** @type {false} */ (false), text: neat };
  const control = numberControl({ ...options, change, ...bounds });
  control.message.remove();
  return { element: control, note: control.message, show: () => control.set(get()) };
}

const replaced = (list, k, x) => list.map((old, j) => (j === k ? x : old));

function timeCells(app, { settings, change }, columns) {
  return columns.map((column, i) => {
    if (i === 0) return { element: el("span", { class: "hint", text: "0" }) };
    if (i === columns.length - 1) return { element: el("span", { class: "hint", text: "duration" }) };
    const put = (t) => {
      const { via, duration } = settings();
      const [low, high] = [via[i - 2]?.u ?? 0, via[i]?.u ?? 1].map((u) => u * duration);
      if (!(t > low && t < high)) return `Type a time between ${neat(low)} and ${neat(high)} s.`;
      return change({ via: replaced(via, i - 1, { ...via[i - 1], u: t / duration }) }, "time of a via point");
    };
    return cellOf(app, `time of ${column.name}`, "s", () => column.share() * settings().duration, put);
  });
}

function jointRows(app, columns, shows) {
  const { coordinates } = app.model;
  const names = shortLabels(coordinates.map((c) => c.label));
  return coordinates.flatMap((c, k) => {
    const cell = ({ name, get, put }) => {
      const title = `${name} ${c.label}`;
      return cellOf(
        app,
        title,
        c.unit,
        () => get()[k],
        (x) => put(replaced(get(), k, x), title),
        { lower: c.lower, upper: c.upper },
      );
    };
    return row(names[k], c.unit, columns.map(cell), shows, app);
  });
}

function poseRows(app, plan, columns, shows) {
  return POSE.flatMap((part, k) => {
    const cell = ({ name, get, put }) => {
      const now = () => anglesOf(framePose(app.kernel, get(), plan.frame()));
      const reach = (x) => {
        const weights = keepsRotation(app, plan.frame()) ? undefined : POSITION;
        const goal = poseOfAngles(replaced(now(), k, x));
        const found = solvePose(app, plan.frame(), goal, { q0: get(), weights });
        if (!found.converged) return `${plan.frame().name} cannot be there: ${short(found.position)} m are missing.`;
        return put(Array.from(found.q), `${name} ${part}`);
      };
      return cellOf(app, `${name} ${part} of the frame`, k < 3 ? "m" : "rad", () => now()[k], reach);
    };
    return row(part, k < 3 ? "m" : "rad", columns.map(cell), shows, app);
  });
}

// The duration, and the shortest one within limits.
function buildDuration(app, plan) {
  const { store } = app;
  const { settings, change } = plan;
  const box = numberControl({
    store,
    label: "duration",
    unit: "s",
    value: settings().duration,
    lower: 1e-3,
    upper: 1e4,
    slider: false,
    change: (x) => change({ duration: x }, "duration"),
  });
  const message = el("p", { class: "hint", role: "status" });
  const shortest = button("Shortest", "as fast as the limits of the joints' velocities allow", () => {
    const made = plan.made();
    const found = made.samples ? shortestDuration(app, made, settings().duration) : null;
    message.textContent = found ? "" : "The joints have no limits of velocity: type a duration.";
    const { qd0, qd1 } = settings();
    if ([...qd0, ...qd1].some((x) => x !== 0))
      message.textContent = "Velocities at the ends are given: type a duration.";
    else if (found) change({ duration: found }, "shortest duration");
  });
  const refresh = () => box.set(settings().duration);
  return { element: [box, el("div", { class: "buttons" }, shortest), message], refresh };
}

// Velocities at both ends.
function buildRates(app, plan) {
  const { model, store } = app;
  const { settings, change } = plan;
  const fields = { qd0: "initial", qd1: "final" };
  const rows = Object.entries(fields).flatMap(([field, word]) =>
    model.velocities.map((v, k) => {
      const label = `${word} velocity of ${v.label}`;
      const put = (x) => change({ [field]: settings()[field].map((old, j) => (j === k ? x : old)) }, label);
      const box = numberControl({ store, label, unit: v.unit, value: 0, slider: false, text: neat, change: put });
      return { box, show: () => box.set(settings()[field][k]) };
    }),
  );
  const element = el(
    "details",
    { class: "fold" },
    el("summary", { text: "Velocities at the ends" }),
    rows.map(({ box }) => box),
  );
  const refresh = () => {
    element.hidden = !WITH_RATES.includes(settings().kind);
    for (const { show } of rows) show();
  };
  return { element, refresh };
}

function buildFile(app, plan) {
  const labels = app.model.coordinates.map((c) => c.label);
  const message = el("p", { class: "error", role: "alert", hidden: true });
  const file = el("input", { type: "file", accept: ".csv,text/csv", "aria-label": "CSV file of a motion" });
  file.addEventListener("change", async () => {
    message.hidden = true;
    try {
      const text = await file.files[0].text();
      file.value = ""; // the same file may be chosen again
      app.store.set({ motionFile: readMotion(app, text, plan.frame()) }, { undo: "file of a motion" });
    } catch (error) {
      message.textContent = error.message;
      message.hidden = false;
    }
  });
  return el(
    "div",
    {},
    file,
    message,
    el("p", {
      class: "hint",
      text:
        `Columns t, ${labels.slice(0, 2).join(", ")}, ... and perhaps qd.${labels[0]}, qdd.${labels[0]}, ...; ` +
        "or t, x, y, z and perhaps roll, pitch, yaw. Radians and SI units.",
    }),
  );
}
