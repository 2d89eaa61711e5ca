// Curves that a reader chooses (curves.js), beside those of the mode: over time, or against each other.

import { Column, quantitiesOf } from "./curves.js";
import { el } from "./elements.js";

const MOST = 24; // curves

/**
 * A chosen curve: names of a quantity, of one of its objects and of a component, "" where it has one alone.
 * @typedef {{ quantity: string, object: string, component: string }} Chosen
 */

const nameOf = ({ quantity, object, component }) => [quantity, object, component].filter(Boolean).join(" ");

// Defines the field `curves` of the store, { list, against }, and puts the choice above the charts.
export function connectCurves(app) {
  const { store, plots, kernel } = app;
  if (!kernel) return;
  const all = quantitiesOf(app);
  store.define("curves", { list: [], against: "" }, { undo: true, link: true });
  const columns = new Map(); // columns of the motion that is shown, by quantity and object
  let of = null;
  const columnOf = (one) => {
    const motion = store.get("motion");
    if (of !== motion) columns.clear();
    of = motion;
    const quantity = all.find((x) => x.name === one.quantity);
    const i = quantity?.objects.indexOf(one.object) ?? -1;
    const c = quantity?.components.indexOf(one.component) ?? -1;
    if (!motion || i < 0 || c < 0) return null;
    const key = `${one.quantity}/${one.object}`;
    if (!columns.has(key)) columns.set(key, new Column(app, motion, quantity, i));
    const column = columns.get(key);
    return { unit: quantity.unit(i, c), values: () => column.values[c] };
  };
  const before = plots.more;
  plots.more = () => [...before(), ...chartsOf(store, columnOf)];
  const picker = buildPicker(app, all);
  plots.bar.after(picker.element);
  plots.bar.querySelector(".spring").after(picker.toggle);
  store.on(["curves"], () => {
    picker.refresh();
    plots.show(plots.given || []);
  });
}

function chartsOf(store, columnOf) {
  const motion = store.get("motion");
  const { list, against } = store.get("curves");
  const found = list.map((one) => ({ one, column: columnOf(one) })).filter(({ column }) => column);
  const across = found.find(({ one }) => nameOf(one) === against);
  const charts = [];
  for (const { one, column } of found) {
    if (one === across?.one) continue;
    const title = one.quantity;
    let chart = charts.find((x) => x.title === title && x.unit === column.unit);
    if (!chart) {
      const same = charts.filter((x) => x.title.startsWith(title)).length;
      chart = { title: same ? `${title} [${column.unit}]` : title, unit: column.unit, own: true, series: [] };
      if (across)
        Object.assign(chart, {
          plane: true,
          stretched: true,
          axis: { name: against, unit: across.column.unit, other: "" },
        });
      charts.push(chart);
    }
    chart.series.push({
      name: [one.object === "all" ? "" : one.object, one.component].filter(Boolean).join(" ") || one.quantity,
      get t() {
        return motion.t;
      },
      get count() {
        return motion.count;
      },
      get values() {
        return column.values();
      },
      ...(across
        ? {
            get x() {
              return across.column.values();
            },
          }
        : {}),
    });
  }
  return charts;
}

const fill = (box, names) => box.replaceChildren(...names.map((name) => el("option", { value: name, text: name })));
function select(label, names, onchange = () => {}) {
  const made = el("select", { "aria-label": label, title: label, onchange });
  fill(made, names);
  return made;
}

// Lists for a quantity, its object and its component: { elements, chosen() }, the curves that they name.
function buildLists(all) {
  const names = all.map((x) => x.name);
  const quantity = select("quantity of a curve", names, follow);
  const object = select("object of a curve", []);
  const component = select("component of a curve", []);
  const present = () => all.find((x) => x.name === quantity.value);
  function follow() {
    const { objects, components } = present();
    fill(object, objects);
    fill(component, components.length > 1 ? ["all", ...components] : components);
    component.hidden = components.length < 2;
  }
  follow();
  const chosen = () => {
    const parts = component.value === "all" ? present().components : [component.value];
    return parts.map((name) => ({ quantity: quantity.value, object: object.value, component: name }));
  };
  return { elements: [quantity, object, component], chosen };
}

// The choice: { element, toggle, refresh }.
function buildPicker(app, all) {
  const { store, plots } = app;
  const lists = buildLists(all);
  const message = el("p", { class: "error", role: "alert", hidden: true });
  const set = (changes, undo) => store.set({ curves: { ...store.get("curves"), ...changes } }, { undo });
  function add() {
    const { list } = store.get("curves");
    const made = lists.chosen();
    const fresh = made.filter((one) => !list.some((other) => nameOf(other) === nameOf(one)));
    message.hidden = list.length + fresh.length <= MOST;
    message.textContent = `At most ${MOST} curves are shown: remove some first.`;
    if (!message.hidden) return;
    plots.chosen = [made[0].quantity];
    if (fresh.length) set({ list: [...list, ...fresh] }, `curve ${nameOf(made[0])}`);
    else plots.show(plots.given || []);
  }
  const chosen = el("div", { class: "chips", role: "group", "aria-label": "chosen curves" });
  const against = select("what the curves are drawn over", ["time"], () =>
    set({ against: against.value === "time" ? "" : against.value }, `curves over ${against.value}`),
  );
  const element = el(
    "div",
    { class: "curves", hidden: true, role: "group", "aria-label": "choose curves" },
    lists.elements,
    el("button", { type: "button", text: "Add", title: "add these curves", onclick: add }),
    el("label", {}, "over ", against),
    chosen,
    message,
  );
  const toggle = el("button", {
    type: "button",
    class: "quiet",
    text: "curves",
    title: "choose any quantity of a joint, a body, a frame or all",
    "aria-expanded": "false",
    onclick: () => {
      element.hidden = !element.hidden;
      toggle.setAttribute("aria-expanded", String(!element.hidden));
      plots.refresh();
    },
  });
  const remove = (one) => {
    const { list, against: over } = store.get("curves");
    set(
      { list: list.filter((other) => other !== one), against: over === nameOf(one) ? "" : over },
      `remove ${nameOf(one)}`,
    );
  };
  function refresh() {
    const { list, against: over } = store.get("curves");
    const names = list.map(nameOf);
    chosen.replaceChildren(
      ...list.map((one, k) =>
        el("button", {
          type: "button",
          text: `${names[k]} \u00d7`,
          title: `remove ${names[k]}`,
          onclick: () => remove(one),
        }),
      ),
    );
    fill(against, ["time", ...names]);
    against.value = over || "time";
  }
  refresh();
  return { element, toggle, refresh };
}
