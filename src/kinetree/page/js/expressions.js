// Numbers as people type them: 0.5, 1e-3, 1/3, pi/2, 2*sqrt(3). An own reader of arithmetic: nothing is executed.

/** @type {{ [name: string]: (x: number) => number }} */
const FUNCTIONS = {
  sqrt: Math.sqrt,
  sin: Math.sin,
  cos: Math.cos,
  tan: Math.tan,
  asin: Math.asin,
  acos: Math.acos,
  atan: Math.atan,
  abs: Math.abs,
};
const TOKEN = /\s*(?:(\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)|(pi|\u03c0|[a-z]+)|(\*\*|[-+*/^()]))/y;
const DEEPEST = 50; // brackets and signs inside of each other
const LONGEST = 200; // characters

// The value of an expression; NaN for a text that is none. Angles of functions are in radians.
export function valueOf(text) {
  const tokens = text.length > LONGEST ? null : tokensOf(text.trim());
  if (!tokens?.length) return NaN;
  let [at, depth] = [0, 0];
  const takes = (...signs) => signs.includes(tokens[at]) && tokens[at++];
  const sum = () => chain(product, { "+": (a, b) => a + b, "-": (a, b) => a - b });
  const product = () => chain(signed, { "*": (a, b) => a * b, "/": (a, b) => a / b });
  function chain(part, signs) {
    let value = part();
    for (let sign = takes(...Object.keys(signs)); sign; sign = takes(...Object.keys(signs)))
      value = signs[sign](value, part());
    return value;
  }
  function signed() {
    if (++depth > DEEPEST) return NaN;
    const sign = takes("+", "-");
    return sign ? (sign === "-" ? -1 : 1) * signed() : power();
  }
  function power() {
    const base = atom();
    return takes("^", "**") ? base ** signed() : base;
  }
  function atom() {
    const token = tokens[at++];
    if (typeof token === "number") return token;
    if (token === "pi" || token === "\u03c0") return Math.PI;
    const called = Object.hasOwn(FUNCTIONS, token ?? "") ? FUNCTIONS[token] : null;
    if (token !== "(" && !(called && takes("("))) return NaN;
    const value = sum();
    return takes(")") ? (called ? called(value) : value) : NaN;
  }
  const value = sum();
  return at === tokens.length ? value : NaN;
}

// An angle in degrees: an expression with pi in it is in radians, as nobody means pi/2 degrees.
export const degreesOf = (text) => valueOf(text) * (/pi|\u03c0/.test(text) ? 180 / Math.PI : 1);

function tokensOf(text) {
  const found = [];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < text.length) {
    const match = TOKEN.exec(text);
    if (!match) return null;
    found.push(match[1] !== undefined ? Number(match[1]) : match[2] || match[3]);
  }
  return found;
}
