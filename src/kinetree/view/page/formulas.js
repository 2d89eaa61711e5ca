// Formulas of lessons: numbers, names, lists, arithmetic, entries of arrays and calls of known functions, nothing else.
//
//   evaluate("2 * gravity_torque([30*deg])[0]", names)   // names: { gravity_torque: f, q: array, ... }
//
// Arrays are { data, shape } or plain arrays of numbers. The grammar is that of lessons/expressions.py.

const CONSTANTS = {
  pi: Math.PI, deg: Math.PI / 180, sqrt: Math.sqrt, sin: Math.sin, cos: Math.cos, tan: Math.tan, acos: Math.acos, atan2: Math.atan2, abs: Math.abs, log: Math.log,
  norm: (x) => Math.hypot(...x),
};
const TOKEN = /\s*(?:(\d+\.?\d*(?:e[-+]?\d+)?|\.\d+(?:e[-+]?\d+)?)|([A-Za-z_]\w*)|('[^']*'|"[^"]*")|(\*\*|[-+*/()[\],]))/iy;

export function evaluate(text, names = {}) {
  const tokens = tokensOf(text);
  const known = { ...CONSTANTS, ...names };
  let k = 0;
  const see = (sign) => tokens[k]?.sign === sign;
  const take = (sign) => (see(sign) ? (k += 1) : 0);
  const need = (sign) => { if (!take(sign)) throw new Error(`'${sign}' is missing in the formula ${text}`); };

  function sum() {
    let x = product();
    for (;;) {
      if (take("+")) x = arithmetic(x, product(), (a, b) => a + b);
      else if (take("-")) x = arithmetic(x, product(), (a, b) => a - b);
      else return x;
    }
  }
  function product() {
    let x = signed();
    for (;;) {
      if (take("*")) x = arithmetic(x, signed(), (a, b) => a * b);
      else if (take("/")) x = arithmetic(x, signed(), (a, b) => a / b);
      else return x;
    }
  }
  function signed() {
    return take("-") ? arithmetic(0, signed(), (a, b) => a - b) : power();
  }
  function power() {
    const x = entry();
    return take("**") ? x ** signed() : x;
  }
  function entry() {
    let x = atom();
    while (take("[")) {
      const places = list("]");
      x = entryOf(x, places, text);
    }
    return x;
  }
  function list(end) {
    const out = [];
    if (take(end)) return out;
    do out.push(sum()); while (take(","));
    need(end);
    return out;
  }
  function atom() {
    const token = tokens[k++];
    if (!token) throw new Error(`the formula ${text} ends too soon`);
    if (token.number !== undefined) return token.number;
    if (token.string !== undefined) return token.string;
    if (token.sign === "(") {
      const x = sum();
      need(")");
      return x;
    }
    if (token.sign === "[") return Float64Array.from(list("]"));
    if (token.name === undefined || !Object.hasOwn(known, token.name)) throw new Error(`the formula ${text} has the unknown name ${token.name ?? token.sign}`);
    return take("(") ? known[token.name](...list(")")) : known[token.name];
  }
  const value = sum();
  if (k < tokens.length) throw new Error(`the formula ${text} goes on after its end`);
  return value;
}

function tokensOf(text) {
  const out = [];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < text.trimEnd().length) {
    const at = TOKEN.lastIndex;
    const found = TOKEN.exec(text);
    if (!found) throw new Error(`the formula ${text} has an unknown sign at ${at}`);
    const [, number, name, string, sign] = found;
    out.push(number !== undefined ? { number: Number(number) } : name !== undefined ? { name } : string !== undefined ? { string: string.slice(1, -1) } : { sign });
  }
  return out;
}

function arithmetic(x, y, f) {
  const [a, b] = [x?.data ?? x, y?.data ?? y];
  if (typeof a === "number" && typeof b === "number") return f(a, b);
  const n = a.length ?? b.length;
  return Float64Array.from({ length: n }, (_, i) => f(a.length === undefined ? a : a[i], b.length === undefined ? b : b[i]));
}

function entryOf(x, places, text) {
  const data = x.data ?? x;
  const shape = x.shape ?? [data.length];
  if (places.length !== shape.length) throw new Error(`${text}: an array of ${shape.length} dimensions has ${places.length} places`);
  return data[places.reduce((at, place, d) => at * shape[d] + place, 0)];
}
