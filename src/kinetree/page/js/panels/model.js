// Model: the table of the mechanism with numbers to change, the DH motions of a row, checks, and files.

import { chooser } from "../chooser.js";
import { numberControl } from "../controls.js";
import { inForm } from "../dh.js";
import { buildMotions } from "../dh_motions.js";
import { choice, download, el, section } from "../elements.js";
import { csvText, pythonRows, tomlText, urdfText } from "../model_files.js";
import { server } from "../server.js";
import { buildStructure } from "../structure.js";
import { buildBody, buildLines } from "../model_table.js";
import { fileName, loadLine } from "../names.js";
import { neat } from "../units.js";

export const panel = {
  name: "Build",
  key: "b",
  title: "read and change the numbers of the mechanism, and see what its DH parameters mean",
  needs: [],
  later: true,
  suits: (app) => Boolean(app.table) && app.model.bodies.length > 0,

  build(host, app) {
    const { store, model, data } = app;
    app.row = () => (store.get("picked") >= 0 ? store.get("picked") : 0);
    const editRow = (i, changes, undo) => {
      const table = store.get("table");
      return app.table.change(
        { ...table, rows: table.rows.map((row, k) => (k === i ? { ...row, ...changes } : row)) },
        undo,
      );
    };
    const editPart = (part, field, x) => {
      const table = store.get("table");
      return app.table.change({ ...table, [part]: { ...table[part], [field]: x } }, `${field} of the ${part}`);
    };
    const lines = buildLines(app, { choose: (i) => store.set({ picked: i }), edit: editRow, editPart });
    const units = choice(["deg", "rad"], {
      label: "units of angles",
      value: store.get("units"),
      change: (x) => store.set({ units: x }),
    });
    const form = choice(["standard", "modified"], {
      label: "convention of the table",
      value: store.get("table").form,
      titles: {
        standard: "Rz(theta) Tz(b) Tx(a) Rx(alpha), from frame i to i+1",
        modified: "Rx(alpha) Tx(a) Tz(b) Rz(theta), from frame i-1 to i",
      },
      change: (x) => store.set({ table: inForm(store.get("table"), x) }, { undo: "convention" }),
    });
    const reset = el("button", {
      type: "button",
      text: "Given numbers",
      title: "all numbers as they were given",
      onclick: () => app.table.change(app.table.first, "given numbers"),
    });
    const body = el("div", {});
    const heading = el("h2", {});
    let shown = { i: -1, refresh: () => {} };
    const gravity = buildGravity(app);
    const loops = buildLoops(app);
    const motions = buildMotions(app, lines.light);
    const structure = server ? buildStructure(app) : unchanging();
    host.append(
      ...(server
        ? [
            el(
              "div",
              { class: "buttons" },
              el("button", {
                type: "button",
                text: "Open another mechanism",
                title: "of the library, with pictures, of the folder, or of this computer (Ctrl+o)",
                onclick: () => chooser(app),
              }),
            ),
            el("div", {}, structure.fresh),
          ]
        : []),
      section(
        "Numbers",
        el("p", { class: "hint", text: liveSentence(app) }),
        data.table.serial ? form : null,
        units,
        lines.element,
        el("p", {
          class: "hint",
          hidden: !store.get("table").rows.some((r) => r.form !== "placement" && !r.placed),
          text:
            "The coordinate of a joint is added to its shaded number. Play shows what the numbers of the " +
            "picked row mean.",
        }),
        motions.buttons,
        el("div", { class: "buttons", hidden: !app.table.kinds.size }, reset),
      ),
      el("section", { class: "group" }, heading, body),
      section("Gravity [m/s\u00b2]", el("div", { class: "two three" }, gravity.element)),
      ...(loops ? [section("Ends of loops [m]", loops.element)] : []),
      ...[structure.element].flat(),
      motions.element,
      buildChecks(app),
      buildFiles(app),
    );

    function refresh() {
      if (app.part !== part) return;
      const i = app.row();
      lines.refresh();
      if (shown.i !== i) {
        heading.textContent = `Body ${model.bodies[i].name}`;
        const made = buildBody(app, i, { edit: editRow });
        body.replaceChildren(...made.element);
        shown = { i, refresh: made.refresh };
      }
      shown.refresh();
      gravity.refresh();
      loops?.refresh();
      form.set(store.get("table").form);
      units.set(store.get("units"));
      reset.hidden = !app.table.isEdited();
      motions.refresh();
      structure.refresh();
    }
    store.on(["table", "picked", "units", "q", "history"], refresh);
    const part = {
      enter() {
        refresh();
        app.plots.show([]);
        app.player.show();
        app.stage.refresh();
      },
      leave: () => motions.stop(),
      layer: () => motions.layer(),
      motionsDone: () => motions.done,
      python: () => python(app),
    };
    return part;
  },
};

// In a page that was opened from a file: how to change the structure.
const unchanging = () => ({
  refresh() {},
  element: section(
    "Structure",
    el("p", {
      class: "hint",
      text:
        "Links are added, removed and reordered in the studio: run kinetree studio, and drop this " +
        "mechanism's file on its page.",
    }),
  ),
});

// What can be changed here, and what cannot.
function liveSentence({ table: { kinds }, kernel, model }) {
  if (kinds.has("rotations") && model.lengths?.length)
    return (
      "Masses, inertias and gravity can be changed here, lengths in the mode Loops: the picture and all " +
      "modes follow at once."
    );
  if (kinds.has("rotations")) return "Every number here can be changed: the picture and all modes follow at once.";
  if (kinds.has("lengths"))
    return (
      "Lengths, masses, inertias and gravity can be changed; angles cannot, since the functions with them " +
      "would not fit into this page."
    );
  if (kinds.has("inertia"))
    return (
      "Masses, centers of mass, inertias and gravity can be changed; lengths and angles cannot, since the " +
      "functions with them would not fit into this page."
    );
  return kernel
    ? "These numbers cannot be changed here: functions with all of them as inputs would not fit into this page."
    : "These numbers cannot be changed here: the page has no functions of the mechanism.";
}

function buildGravity(app) {
  const { store } = app;
  const rows = ["x", "y", "z"].map((axis, k) =>
    numberControl({
      store,
      label: axis,
      title: `gravity ${axis}`,
      unit: "m/s^2",
      value: store.get("table").gravity[k],
      slider: false,
      text: neat,
      fixed: !app.table.kinds.has("inertia"),
      change: (x) =>
        app.table.change(
          { ...store.get("table"), gravity: store.get("table").gravity.map((old, j) => (j === k ? x : old)) },
          `gravity ${axis}`,
        ),
    }),
  );
  return { element: rows, refresh: () => rows.forEach((row, k) => row.set(store.get("table").gravity[k])) };
}

// Where loops are attached to their bodies, and the lengths of rods.
function buildLoops(app) {
  const { store, model } = app;
  const bound = app.data.table.loops;
  if (!bound.some((names) => !names)) return null;
  const shows = [];
  const fixed = !app.table.kinds.has("lengths");
  const nameOf = (i) => (i < 0 ? "ground" : model.bodies[i].name);
  const control = (n, label, title, get, made) => {
    const x = numberControl({
      store,
      label,
      title,
      unit: "m",
      value: get(store.get("table").loops[n]),
      slider: false,
      text: neat,
      fixed,
      change: (value) =>
        app.table.change(
          {
            ...store.get("table"),
            loops: store.get("table").loops.map((old, j) => (j === n ? made(old, value) : old)),
          },
          title,
        ),
    });
    shows.push(() => x.set(get(store.get("table").loops[n])));
    return x;
  };
  const element = model.loops.map((loop, n) =>
    bound[n]
      ? []
      : [
          ...["a", "b"].map((side) => [
            el("p", { class: "hint", text: `${loop.name} on ${nameOf(loop[side])}` }),
            el(
              "div",
              { class: "two three" },
              ["x", "y", "z"].map((axis, k) =>
                control(
                  n,
                  axis,
                  `${loop.name} on ${nameOf(loop[side])} ${axis}`,
                  (x) => x[side][k],
                  (old, value) => ({ ...old, [side]: old[side].map((y, j) => (j === k ? value : y)) }),
                ),
              ),
            ),
          ]),
          ...(loop.length
            ? [
                control(
                  n,
                  "length",
                  `length of ${loop.name}`,
                  (x) => x.length,
                  (old, value) => ({ ...old, length: value }),
                ),
              ]
            : []),
        ],
  );
  return { element, refresh: () => shows.forEach((show) => show()) };
}

const WORDS = {
  read: "Read",
  changed: "Changed",
  dropped: "Left out",
  suspect: "Suspect",
  wrong: "Wrong",
  caution: "Caution",
  note: "Note",
};

const MINOR = new Set(["read", "changed", "dropped"]); // of the import: they are folded

// What the reader of the file and the doctor found: computed when the page was written, and again in the studio.
function buildChecks(app) {
  const list = el("ul", { class: "remarks" });
  const message = el("p", { class: "hint", role: "status" });
  const others = el("details", { class: "remarks" });
  const line = ({ level, text }) => el("li", { class: level, text: `${WORDS[level]}: ${text}` });
  const show = (notes) => {
    const minor = notes.filter(({ level }) => MINOR.has(level));
    list.replaceChildren(...notes.filter(({ level }) => !MINOR.has(level)).map(line));
    others.hidden = !minor.length;
    others.replaceChildren(
      el("summary", { text: `What was read, changed and left out (${minor.length})` }),
      el("ul", {}, minor.map(line)),
    );
  };
  show(app.data.table.notes);
  if (!app.data.table.notes.length) message.textContent = "No remarks.";
  if (app.model.loops.length)
    message.textContent = "The mode Loops has the findings on the loops at the present position.";
  const again = el("button", {
    type: "button",
    text: "Ask the doctor",
    title: "check the mechanism with its present numbers, in Python",
    onclick: async () => {
      message.textContent = "Checking ...";
      again.disabled = true;
      try {
        show(
          (
            await server.call(
              "doctor",
              app.table.isEdited()
                ? { model: tomlText(app) }
                : {
                    parameters: Object.fromEntries(
                      app.model.parameters.map((p, k) => [p.name, app.store.get("parameters")[k]]),
                    ),
                  },
            )
          ).notes,
        );
        message.textContent = "";
      } catch (error) {
        message.textContent = error.message;
      } finally {
        again.disabled = false;
      }
    },
  });
  return section("Checks", list, others, message, ...(server ? [el("div", { class: "buttons" }, again)] : []));
}

function buildFiles(app) {
  const { model, store, data } = app;
  const name = fileName(model.name);
  const button = (text, title, make) =>
    el("button", { type: "button", text, title, onclick: () => download(`${name}.${text.toLowerCase()}`, make()) });
  const made = [];
  if (data.kernel?.editable)
    made.push(button("TOML", "the mechanism with all its parts as a file of Kinetree", () => tomlText(app)));
  if (data.table.urdf)
    made.push(
      button("URDF", "links and joints for other programs; gravity, springs and contacts are left out", () =>
        urdfText(data.table.urdf, model),
      ),
    );
  if (data.table.serial)
    made.push(button("CSV", "the DH table, which Kinetree reads too", () => csvText(model, store.get("table"))));
  return section(
    "Save the mechanism",
    el("div", { class: "buttons" }, made),
    made.length < 3
      ? el("p", {
          class: "hint",
          text: "URDF has no loops and few kinds of joints; CSV is for chains given by DH parameters.",
        })
      : null,
  );
}

function python(app) {
  if (!app.data.table.serial)
    return ["import kinetree as kt", "", loadLine(app), "print(arm.mechanism)", ""].join("\n");
  return pythonRows(app.model, app.store.get("table"));
}
