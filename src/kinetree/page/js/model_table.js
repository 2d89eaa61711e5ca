// The table of the mechanism: a line per body, with its DH parameters where it has such, and the numbers of the picked
// body.

import { numberControl } from "./controls.js";
import { breakable, el } from "./elements.js";
import { adaptedMasses, ANGLES, GEOMETRY, faultOf } from "./table.js";
import { massFrameOf } from "./names.js";
import { neat, shownUnit } from "./units.js";

export const SYMBOLS = { theta: "\u03b8", b: "b", a: "a", alpha: "\u03b1", gamma: "\u03b3", epsilon: "\u03b5" };
const WORDS = {
  theta: "angle about z",
  b: "displacement along z",
  a: "displacement along x",
  alpha: "angle about x",
  gamma: "angle about z of the parent",
  epsilon: "displacement along z of the parent",
};
const SHORT = { revolute: "R", prismatic: "P", fixed: "-" };
const MOMENTS = ["xx", "yy", "zz", "xy", "yz", "zx"];

// The kind of numbers (page/live.py) to which a field belongs.
export const kindOf = (field) =>
  ANGLES.has(field) ? "rotations" : field in SYMBOLS || "xyz".includes(field) ? "lengths" : "inertia";
const unitOf = (field) => (ANGLES.has(field) ? "rad" : "m");
// The parameter to which the coordinate of the joint is added.
export const variableOf = (row) => ({ revolute: "theta", prismatic: "b" })[row.joint];

// Returns { element, refresh }. choose(i) picks a line; edit(i, changes, undo) returns "" or why it is refused.
export function buildLines(app, { choose, edit, editPart }) {
  const { store } = app;
  const box = el("div", { class: "dh" });
  let shape = "";
  let cells = [];
  const canEdit = (field) => app.table.kinds.has(kindOf(field));

  function cell(row, field, get, put) {
    const control = numberControl({
      store,
      label: field,
      title: `${field} of ${row.name}`,
      unit: unitOf(field),
      value: get(store.get("table")),
      slider: false,
      text: neat,
      fixed: !canEdit(field) || !put,
      change: (x) => put(x),
    });
    cells.push(() => control.set(get(store.get("table"))));
    control.message.remove();
    return { control, message: control.message };
  }

  function build() {
    const table = store.get("table");
    const dh = table.rows.filter((row) => row.form !== "placement" && !row.placed);
    const branched = dh.some((row) => row.gamma || row.epsilon);
    const columns = dh.length ? [...(branched ? ["gamma", "epsilon"] : []), ...GEOMETRY[dh[0].form]] : [];
    cells = [];
    const line = (head, kind, made, i) => {
      const body = el(
        "tr",
        { class: "line" },
        head,
        el("td", { class: "kind", text: kind.text, title: kind.title }),
        made.map((x) =>
          x.colspan
            ? el("td", { colspan: String(x.colspan), class: "hint", text: x.text })
            : el("td", { class: x.variable ? "variable" : "", title: x.title || null, "data-cell": x.id }, x.control),
        ),
      );
      if (i >= 0) cells.push(() => body.classList.toggle("picked", i === app.row()));
      const note = made.filter((x) => x.message).map((x) => x.message);
      return [body, el("tr", { class: "notes" }, el("td", { colspan: String(columns.length + 2) }, note))];
    };
    const ofRow = (row, i) => {
      const head = el(
        "th",
        { scope: "row" },
        el(
          "button",
          { type: "button", class: "pick", title: `the numbers of ${row.name}`, onclick: () => choose(i) },
          breakable(row.name),
        ),
      );
      const kind = { text: SHORT[row.joint] || row.joint, title: `${row.joint} joint` };
      if (row.placed)
        return line(head, kind, columns.length ? [{ colspan: columns.length, text: placedBy(app, row) }] : [], i);
      if (row.form === "placement")
        return line(head, kind, columns.length ? [{ colspan: columns.length, text: "placed below" }] : [], i);
      const locked = table.form === "standard" && table.open && i === table.rows.length - 1;
      return line(
        head,
        kind,
        columns.map((field) => ({
          ...cell(
            row,
            field,
            (t) => t.rows[i][field],
            locked && (field === "a" || field === "alpha")
              ? null
              : (x) => edit(i, { [field]: x }, `${field} of ${row.name}`),
          ),
          id: `${i}.${field}`,
          variable: field === variableOf(row),
          title:
            field === variableOf(row) ? `${WORDS[field]}; the coordinate of the joint is added to it` : WORDS[field],
        })),
        i,
      );
    };
    const ofEnd = (part, name) =>
      !table[part]
        ? []
        : line(
            el("th", { scope: "row", text: name }),
            { text: "", title: "" },
            columns.map((field) =>
              field === "a" || field === "alpha"
                ? cell(
                    { name },
                    field,
                    (t) => t[part]?.[field] ?? 0,
                    (x) => editPart(part, field, x),
                  )
                : { control: "" },
            ),
            -1,
          );
    box.replaceChildren(
      el(
        "table",
        { class: "lines", "aria-label": "table of the mechanism" },
        el(
          "thead",
          {},
          el(
            "tr",
            {},
            el("th", { scope: "col", text: "body" }),
            el("th", { scope: "col", text: "joint" }),
            columns.map(headOf),
          ),
        ),
        el("tbody", {}, ofEnd("base", "base"), table.rows.flatMap(ofRow), ofEnd("end", "tool")),
      ),
    );
    shape = shapeOf(table);
  }
  function headOf(field) {
    const head = el("th", { scope: "col", title: WORDS[field] });
    cells.push(() => {
      head.textContent = `${SYMBOLS[field]} [${shownUnit(unitOf(field), store.get("units")).unit}]`;
    });
    return head;
  }
  const shapeOf = ({ form, base, end, rows }) => {
    const ofRows = rows.map((row) => row.form + (row.gamma || row.epsilon ? "b" : ""));
    return [form, Boolean(base), Boolean(end), ...ofRows].join("|");
  };
  return {
    element: box,
    // Mark the cell of a field of row i, and no other.
    light(i, field) {
      for (const cell of box.querySelectorAll("[data-cell]"))
        cell.classList.toggle("lit", cell.getAttribute("data-cell") === `${i}.${field}`);
    },
    refresh() {
      if (shapeOf(store.get("table")) !== shape) build();
      cells.forEach((show) => show());
    },
  };
}

// Where the placement of a row changes if not in the table.
export const placedBy = ({ model }, row) =>
  model.lengths?.length ? "lengths change in the mode Loops" : `set by ${row.placed}`;

// Controls of one body: its placement where it has no DH parameters, mass, center of mass, inertia. The six numbers of
// the inertia are one unit: they are applied as soon as they are together those of a body.
export function buildBody(app, i, { edit }) {
  const { store } = app;
  const row = () => store.get("table").rows[i];
  const { name } = row();
  const shows = [];
  let draft = null; // { of: the inertia that it changes, inertia: as typed }
  const inertia = () => (draft?.of === row().inertia ? draft.inertia : row().inertia);
  const unfinished = el("p", { class: "hint missing", role: "status" });
  const discard = el("button", {
    type: "button",
    text: "Discard",
    title: "the inertia as it was",
    onclick: () => {
      draft = null;
      show();
    },
  });
  const waiting = el("div", { hidden: true }, unfinished, el("div", { class: "buttons" }, discard));
  const show = () => {
    shows.forEach((one) => one());
    waiting.hidden = inertia() === row().inertia;
  };
  const control = (label, title, unit, field, get, put) => {
    const x = numberControl({
      store,
      label,
      title: `${title} of ${name}`,
      unit,
      value: get(row()),
      slider: false,
      text: neat,
      fixed: !app.table.kinds.has(kindOf(field)) || Boolean(kindOf(field) === "inertia" && row().weighed),
      change: (value) => put(value, `${title} of ${name}`),
    });
    shows.push(() => x.set(get(row())));
    return x;
  };
  const field = (made) => (value, undo) => {
    const changes = made(value, row());
    return ("mass" in changes && faultOf(app.kernel, { ...row(), ...changes })) || edit(i, changes, undo);
  };
  const moment = (k) => (value, undo) => {
    const next = replaced(inertia(), k, value);
    const fault = faultOf(app.kernel, { ...row(), inertia: next });
    draft = fault ? { of: row().inertia, inertia: next } : null;
    unfinished.textContent = `Not used yet. ${fault} Type the other moments as well, or discard these.`;
    if (!fault) edit(i, { inertia: next }, undo);
    show();
  };
  const replaced = (list, k, value) => list.map((old, j) => (j === k ? value : old));
  const placement =
    row().form !== "placement" || row().placed
      ? []
      : GEOMETRY.placement.map((f) =>
          control(
            f,
            f,
            unitOf(f),
            f,
            (r) => r[f],
            field((x) => ({ [f]: x })),
          ),
        );
  const masses = [
    control(
      "mass",
      "mass",
      "kg",
      "mass",
      (r) => r.mass,
      field((x) => ({ mass: x })),
    ),
    ...["x", "y", "z"].map((axis, k) =>
      control(
        `center ${axis}`,
        `center of mass ${axis}`,
        "m",
        "com",
        (r) => r.com[k],
        field((x, r) => ({ com: replaced(r.com, k, x) })),
      ),
    ),
    ...MOMENTS.map((axis, k) =>
      control(`I ${axis}`, `inertia ${axis}`, "kg m^2", "inertia", () => inertia()[k], moment(k)),
    ),
  ];
  const stale = buildStale(app, i, { edit });
  const set = [
    row().placed && row().form === "placement" ? placedBy(app, row()) : "",
    row().weighed ? `mass and inertia are set by ${row().weighed}` : "",
  ].filter(Boolean);
  return {
    element: [
      ...set.map((text) => el("p", { class: "hint", text })),
      ...(placement.length ? [el("div", { class: "two" }, placement)] : []),
      el("div", { class: "masses" }, masses),
      waiting,
      stale.element,
      el("p", { class: "hint", text: `Center of mass and inertia about it ${massFrameOf(row(), i)}.` }),
    ],
    refresh() {
      show();
      stale.refresh();
    },
  };
}

// A mass or a length was changed, and the inertia was not: it is said, and offered to follow.
function buildStale(app, i, { edit }) {
  const { store } = app;
  const text = el("p", { class: "hint missing", role: "status" });
  const follow = el("button", {
    type: "button",
    text: "Adapt the inertia",
    title: "a body of the same shape: inertia in proportion to the mass, stretched with the length",
    onclick: () => edit(i, staleOf(app, i).adapted, `inertia of ${store.get("table").rows[i].name}`),
  });
  const element = el("div", { hidden: true }, text, el("div", { class: "buttons" }, follow));
  const refresh = () => {
    const { reasons, adapted } = staleOf(app, i);
    element.hidden = !reasons.length || !app.table.kinds.has("inertia");
    text.textContent = `${reasons.join(" and ")}; center of mass and inertia are those of before.`;
    follow.hidden = !adapted;
  };
  return { element, refresh };
}

const staleOf = ({ store, table }, i) => adaptedMasses(table.first, store.get("table"), i);
