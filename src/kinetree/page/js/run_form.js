// The form of a run in Python, from the library's declaration of its options (apps/studio/actions/runs.py).

import { numberControl } from "./controls.js";
import { el } from "./elements.js";

/**
 * @typedef {{ name: string, kind: "number" | "whole" | "flag" | "choice", first: any, help: string, label: string,
 *   unit?: string, choices?: { [name: string]: string }, methods?: string[] }} Option
 */

/**
 * Rows for options; those that the chosen method does not have are hidden, and left out of the values.
 * @param {import("./store.js").Store} store
 * @param {Option[]} options
 * @returns {{ rows: HTMLElement[], values: () => { [name: string]: any } }}
 */
export function buildRunForm(store, options) {
  const given = Object.fromEntries(options.map((x) => [x.name, x.first]));
  const rows = options.map((x) => ROWS[x.kind](x, store, (value) => take(x, value)));
  const counts = (/** @type {Option} */ { methods }) => !methods || methods.includes(given.method);
  function take(option, value) {
    given[option.name] = value;
    refresh();
  }
  function refresh() {
    options.forEach((x, k) => {
      rows[k].title = x.help;
      rows[k].hidden = !counts(x);
    });
  }
  refresh();
  return {
    rows,
    values: () =>
      Object.fromEntries(
        options.filter((x) => counts(x) && given[x.name] !== null).map((x) => [x.name, given[x.name]]),
      ),
  };
}

const ROWS = { number: numberRow, whole: numberRow, flag: flagRow, choice: choiceRow };

/** @param {Option} option */
function numberRow({ label, unit, first, kind }, store, take) {
  return numberControl({
    store,
    label,
    unit,
    value: first ?? NaN,
    lower: kind === "whole" ? 1 : 0,
    slider: false,
    text: (x) => (Number.isNaN(x) ? "" : String(x)),
    optional: first === null,
    change: (x) => (kind === "whole" && x % 1 ? "Type a whole number." : void take(Number.isNaN(x) ? null : x)),
  });
}

/** @param {Option} option */
function flagRow({ label, first }, store, take) {
  const box = el("input", { type: "checkbox", checked: first, onchange: () => take(box.checked) });
  return el("label", { class: "check" }, box, label);
}

/** @param {Option} option */
function choiceRow({ label, first, choices }, store, take) {
  const pick = el(
    "select",
    { "aria-label": label, onchange: () => take(pick.value) },
    Object.entries(choices).map(([name, what]) => el("option", { value: name, text: name, title: what })),
  );
  pick.value = first;
  return el("label", { class: "control turns" }, el("span", { class: "name", text: label }), pick);
}
