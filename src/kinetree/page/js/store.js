// The state of a page in one place: fields by name, subscriptions, undo and redo.
//
//   store.define("gains", { stiffness: 10 }, { undo: true, link: true });   // a field of a panel's own
//   store.get("q");  store.set({ q }, { undo: "move joint1" });  store.on(["q", "units"], (store, by) => ...);
//
// Values are replaced, never changed in place: set a new array or object. Subscribers run at once, in the order in
// which they subscribed; pictures wait for the next frame by themselves. A change with `undo`, a text, can be taken
// back; changes of the same text that follow each other within a second, such as those of a slider, are taken back
// together.

const TOGETHER = 1000; // [ms]
const MOST = 200; // states kept for undo

export class Store {
  constructor() {
    this.fields = new Map();
    this.watchers = [];
    this.past = [];
    this.future = [];
    this.stamp = { text: "", time: 0 };
    this.beyond = {}; // undo(), redo(): what they do where there is nothing left to take back or to do again
  }

  // undo: whether undo restores the field. link: whether a link contains it; true, or {write(value), read(text)}. keep:
  // whether the document of the tab has it, though no link does.
  define(name, value, { undo = false, link = false, keep = false } = {}) {
    this.fields.set(name, { value, undo, link, keep });
  }

  get(name) {
    const field = this.fields.get(name);
    if (!field) throw new Error(`no field '${name}' in the store; known: ${[...this.fields.keys()].join(", ")}`);
    return field.value;
  }

  set(changes, { undo = "", by = "" } = {}) {
    const names = Object.keys(changes).filter((name) => this.get(name) !== changes[name]);
    if (!names.length) return;
    if (undo) this.remember(undo);
    for (const name of names) this.fields.get(name).value = changes[name];
    this.notify(names, by);
  }

  // names: ["*"] for all, also those that are defined later.
  on(names, watcher) {
    const entry = { names: new Set(names), watcher };
    this.watchers.push(entry);
    return () => this.watchers.splice(this.watchers.indexOf(entry), 1);
  }

  notify(names, by) {
    for (const { names: wanted, watcher } of [...this.watchers]) {
      if (wanted.has("*") || names.some((name) => wanted.has(name))) watcher(this, by, names);
    }
  }

  remember(text) {
    const now = performance.now();
    const same = text === this.stamp.text && now - this.stamp.time < TOGETHER;
    this.stamp = { text, time: now };
    this.future = [];
    if (same && this.past.length) return;
    this.past.push({ text, values: this.undoable() });
    if (this.past.length > MOST) this.past.shift();
  }

  undoable() {
    const kept = [...this.fields].filter(([, field]) => field.undo);
    return Object.fromEntries(kept.map(([name, field]) => [name, field.value]));
  }

  // What undo and redo go back to, as text of at most so many characters: of every state the fields that differ from
  // the one that follows it on the way to the present one. The states next to the present one come first.
  historyText(most) {
    let left = most;
    const lines = [this.past, this.future].map((states) => {
      const kept = [];
      let next = this.undoable();
      for (const { text, values } of states.toReversed()) {
        const changed = Object.entries(values).filter(([name, x]) => next[name] !== x);
        const line = JSON.stringify([text, Object.fromEntries(changed.map(([name, x]) => [name, plainOf(x)]))]);
        left -= line.length;
        if (left < 0) break;
        kept.push(line);
        next = values;
      }
      return `[${kept.join(",")}]`;
    });
    return `[${lines.join(",")}]`;
  }

  // Take over the states of historyText(), in the present state.
  readHistory(text) {
    [this.past, this.future] = JSON.parse(text).map((lines) => {
      let next = this.undoable();
      return lines
        .map(([name, changed]) => {
          const given = Object.entries(changed).map(([field, x]) => [field, valueOf(x)]);
          next = { ...next, ...Object.fromEntries(given) };
          return { text: name, values: next };
        })
        .toReversed();
    });
    this.notify([], "history");
  }

  undo() {
    this.travel(this.past, this.future, "undo");
  }
  redo() {
    this.travel(this.future, this.past, "redo");
  }

  travel(from, to, by) {
    const entry = from.pop();
    if (!entry) {
      this.beyond[by]?.();
      return;
    }
    to.push({ text: entry.text, values: this.undoable() });
    this.stamp = { text: "", time: 0 };
    const known = Object.keys(entry.values).filter((name) => this.fields.has(name)); // of modes that were opened
    const names = known.filter((name) => this.get(name) !== entry.values[name]);
    for (const name of names) this.fields.get(name).value = entry.values[name];
    this.notify([...names, "history"], by);
  }
}

// Values of fields as plain data, and back: arrays of numbers, sets, and numbers that JSON does not have.
function plainOf(x) {
  if (x instanceof Float64Array) return { $array: Array.from(x, plainOf) };
  if (x instanceof Set) return { $set: [...x] };
  if (typeof x === "number" && !Number.isFinite(x)) return { $number: String(x) };
  if (x === null || typeof x !== "object") return x;
  return Array.isArray(x) ? x.map(plainOf) : Object.fromEntries(Object.entries(x).map(([k, y]) => [k, plainOf(y)]));
}

function valueOf(x) {
  if (x === null || typeof x !== "object") return x;
  if (Array.isArray(x)) return x.map(valueOf);
  if (x.$array) return Float64Array.from(x.$array, valueOf);
  if (x.$set) return new Set(x.$set);
  if (x.$number) return Number(x.$number);
  return Object.fromEntries(Object.entries(x).map(([k, y]) => [k, valueOf(y)]));
}
