// Formulas of lessons as trees, which Python makes from their text (apps/lessons/reading.py).
//
//   evaluate(["*", 2, ["entry", ["call", "gravity_torque", ["name", "q"]], 0]], { gravity_torque: f, q: array })
//
// Arrays are { data, shape } or plain arrays of numbers.

const CONSTANTS = {
  pi: Math.PI,
  deg: Math.PI / 180,
  sqrt: Math.sqrt,
  sin: Math.sin,
  cos: Math.cos,
  tan: Math.tan,
  acos: Math.acos,
  atan2: Math.atan2,
  abs: Math.abs,
  log: Math.log,
  norm: (x) => Math.hypot(...(x.data ?? x)),
};
const ARITHMETIC = {
  "+": (a, b) => a + b,
  "-": (a, b) => a - b,
  "*": (a, b) => a * b,
  "/": (a, b) => a / b,
  "**": (a, b) => a ** b,
};

/** The value of a tree: a number, an array of numbers, a text, or what a function returns. */
export function evaluate(tree, names = {}) {
  if (typeof tree === "number") return tree;
  const [kind, ...parts] = tree;
  const value = (part) => evaluate(part, names);
  if (kind === "text") return parts[0];
  if (kind === "name") return known(parts[0], names);
  if (kind === "list") return Float64Array.from(parts, value);
  if (kind === "neg") return elementwise(-1, value(parts[0]), ARITHMETIC["*"]);
  if (kind === "entry") return entryOf(value(parts[0]), parts.slice(1).map(value));
  if (kind === "call") return known(parts[0], names)(...parts.slice(1).map(value));
  return elementwise(value(parts[0]), value(parts[1]), ARITHMETIC[kind]);
}

function known(name, names) {
  for (const table of [names, CONSTANTS]) if (Object.hasOwn(table, name)) return table[name];
  throw new Error(`a formula has the unknown name ${name}`);
}

function elementwise(x, y, f) {
  const [a, b] = [x?.data ?? x, y?.data ?? y];
  if (typeof a === "number" && typeof b === "number") return f(a, b);
  const at = (values, i) => (typeof values === "number" ? values : values[i]);
  return Float64Array.from({ length: a.length ?? b.length }, (_, i) => f(at(a, i), at(b, i)));
}

function entryOf(x, places) {
  const data = x.data ?? x;
  const shape = x.shape ?? [data.length];
  if (places.length !== shape.length)
    throw new Error(`an array of ${shape.length} dimensions has ${places.length} places`);
  return data[places.reduce((at, place, d) => at * shape[d] + (place < 0 ? place + shape[d] : place), 0)];
}
