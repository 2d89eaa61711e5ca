// Numbers of the table that the reader changes: undo, links, and what follows for the model, the drawing and the
// kernel.

import { inForm } from "./dh.js";
import { applyTable, firstTable, givenNumbers, inputsOf, numbersOf, sameNumbers, withNumbers } from "./table.js";

// Defines the field `table` of the store, and app.table: { first, kinds, isEdited(), change(table, undo) }.
export function connectTable(app) {
  const { data, model, kernel, store } = app;
  if (!data.table) return;
  const first = firstTable(data.table, model);
  const given = givenNumbers(model, first);
  const { kinds = [], slots = [] } = data.kernel?.editable || {};
  store.define("table", first, {
    undo: true,
    link: { write: (t) => written(t, first), read: (text) => readTable(text, first, data.table.serial) },
  });
  const isSame = (table) => sameNumbers(inForm(table, first.form), first);

  function apply(table) {
    applyTable(app, table, first, given);
    if (kernel?.editable) kernel.useNumbers(isSame(table) ? null : inputsOf(model, slots));
    app.followDrawing();
  }
  store.on(["table"], (_, by, names) => {
    apply(store.get("table"));
    if (!names.includes("parameters")) store.notify(["parameters"], by);
  });
  app.table = {
    first,
    kinds: new Set(kinds),
    isEdited: () => !isSame(store.get("table")),
    // Returns "", or a sentence why the table is refused: loops that do not close with it.
    change(table, undo) {
      app.player.play(false);
      apply(table);
      const made = kernel.close(store.get("q"));
      if (!made.closed) {
        apply(store.get("table"));
        return "The loops cannot close with this number: change it less, or change another one first.";
      }
      store.set({ table, ...(model.closed ? { q: made.q } : {}) }, { undo });
      return "";
    },
  };
}

// The convention and the numbers that differ from the given ones, as "standard;3:0.25,7:1.5".
function written(table, first) {
  const [now, before] = [numbersOf(table), numbersOf(inForm(first, table.form))];
  return `${table.form};${now.flatMap((x, k) => (x === before[k] ? [] : [`${k}:${x}`])).join(",")}`;
}

function readTable(text, first, isSerial) {
  const [form, rest = ""] = text.split(";");
  const table = isSerial && ["standard", "modified"].includes(form) ? inForm(first, form) : first;
  const numbers = numbersOf(table);
  for (const [k, x] of rest
    .split(",")
    .filter(Boolean)
    .map((entry) => entry.split(":").map(Number))) {
    if (!(k < numbers.length) || !Number.isFinite(x)) throw new RangeError("not a table of this mechanism");
    numbers[k] = x;
  }
  return rest ? withNumbers(table, numbers) : table;
}
