// Formulas in LaTeX of a small kind as MathML: letters, numbers, signs, ^ and _, fractions, roots, accents, matrices,
// Greek.

const NAMESPACE = "http://www.w3.org/1998/Math/MathML";
const GREEK = Object.fromEntries(
  (
    "alpha:\u03b1 beta:\u03b2 gamma:\u03b3 delta:\u03b4 epsilon:\u03b5 eta:\u03b7 theta:\u03b8 kappa:\u03ba " +
    "lambda:\u03bb mu:\u03bc " +
    "nu:\u03bd xi:\u03be pi:\u03c0 rho:\u03c1 sigma:\u03c3 tau:\u03c4 phi:\u03c6 varphi:\u03c6 chi:\u03c7 " +
    "psi:\u03c8 omega:\u03c9 Gamma:\u0393 Delta:\u0394 Theta:\u0398 " +
    "Lambda:\u039b Sigma:\u03a3 Phi:\u03a6 Psi:\u03a8 Omega:\u03a9 infty:\u221e partial:\u2202 ell:\u2113"
  )
    .split(" ")
    .map((x) => x.split(":")),
);
const SIGNS = {
  cdot: "\u22c5",
  times: "\u00d7",
  approx: "\u2248",
  equiv: "\u2261",
  le: "\u2264",
  ge: "\u2265",
  ne: "\u2260",
  to: "\u2192",
  pm: "\u00b1",
  sim: "\u223c",
  ll: "\u226a",
  gg: "\u226b",
  dots: "\u2026",
  cdots: "\u22ef",
  vdots: "\u22ee",
  ddots: "\u22f1",
  sum: "\u2211",
  int: "\u222b",
  prime: "\u2032",
  circ: "\u2218",
  in: "\u2208",
  perp: "\u22a5",
  "|": "\u2016",
  "{": "{",
  "}": "}",
  "%": "%",
  Rightarrow: "\u21d2",
};
const SPACES = { quad: "1em", ",": "0.17em", ";": "0.28em" };
const WORDS = new Set(["sin", "cos", "tan", "arctan", "ln", "log", "max", "min", "det"]);
const ACCENTS = { dot: "\u02d9", ddot: "\u00a8", hat: "^", tilde: "~", bar: "\u00af" };
const FENCES = { bmatrix: ["[", "]"], pmatrix: ["(", ")"], matrix: ["", ""] };
const TOKEN = /\s*(\\(?:text|mathrm|mathbf|begin|end)\{[^}]*\}|\\[A-Za-z]+|\\.|\d+(?:\.\d+)?|[^\s])/y;

export function math(latex, { block = false } = {}) {
  const made = node("math", ...parse(latex));
  if (block) made.setAttribute("display", "block");
  return made;
}

function node(tag, ...children) {
  const made = document.createElementNS(NAMESPACE, tag);
  made.append(...children);
  return made;
}

function space(width) {
  const made = node("mspace");
  made.setAttribute("width", width);
  return made;
}

function parse(latex) {
  const tokens = [];
  TOKEN.lastIndex = 0;
  for (let found = TOKEN.exec(latex); found; found = TOKEN.exec(latex)) tokens.push(found[1]);
  let k = 0;
  const end = (token) =>
    token === undefined ||
    token === "}" ||
    token === "&" ||
    token === "\\\\" ||
    token.startsWith("\\end{") ||
    token === "\\right";

  function row() {
    const out = [];
    while (!end(tokens[k])) out.push(scripted());
    return out;
  }
  function scripted() {
    const base = one();
    const scripts = {};
    while (tokens[k] === "^" || tokens[k] === "_") scripts[tokens[k++]] = one();
    const wide = base.textContent === SIGNS.sum;
    const [under, over] = [scripts._, scripts["^"]];
    if (under && over) return node(wide ? "munderover" : "msubsup", base, under, over);
    if (under) return node(wide ? "munder" : "msub", base, under);
    return over ? node(wide ? "mover" : "msup", base, over) : base;
  }
  function group() {
    const children = row();
    k += 1; // the brace, or what ends the group
    return children.length === 1 ? children[0] : node("mrow", ...children);
  }
  function one() {
    const token = tokens[k++];
    if (token === "{") return group();
    if (!token.startsWith("\\")) return plain(token);
    const [, name, words] = /^\\([A-Za-z]+|.)(?:\{([^}]*)\})?/.exec(token);
    if (GREEK[name]) return node("mi", GREEK[name]);
    if (ACCENTS[name]) {
      const made = node("mover", one(), node("mo", ACCENTS[name]));
      made.setAttribute("accent", "true");
      return made;
    }
    if (name === "frac") return node("mfrac", one(), one());
    if (name === "sqrt") return node("msqrt", one());
    if (name === "mathbf" || name === "mathrm" || name === "text") return upright(name, words);
    if (WORDS.has(name)) return node("mrow", node("mi", name), space("0.17em"));
    if (name === "left") {
      const open = fence(tokens[k++]);
      const inner = row();
      k += 1; // \right
      return node("mrow", open, ...inner, fence(tokens[k++]));
    }
    if (name === "begin") return matrix(words);
    if (SPACES[name]) return space(SPACES[name]);
    if (SIGNS[name] !== undefined) return node("mo", SIGNS[name]);
    const unknown = node("mtext", token);
    unknown.setAttribute("class", "unknown");
    return unknown;
  }
  function matrix(kind) {
    const rows = [[]];
    for (;;) {
      rows[rows.length - 1].push(node("mtd", ...row()));
      const token = tokens[k++];
      if (token === "&") continue;
      if (token === "\\\\") {
        rows.push([]);
        continue;
      }
      break; // \end
    }
    const table = node("mtable", ...rows.map((cells) => node("mtr", ...cells)));
    const [open, close] = FENCES[kind] || FENCES.matrix;
    return node("mrow", ...(open ? [fence(open)] : []), table, ...(close ? [fence(close)] : []));
  }
  const out = row();
  if (k < tokens.length) out.push(node("mtext", tokens.slice(k).join(" ")));
  return out;
}

function upright(name, words) {
  const made = node(name === "text" ? "mtext" : "mi", GREEK[words.slice(1)] ?? words);
  made.setAttribute("mathvariant", "normal");
  if (name === "mathbf") made.setAttribute("class", "bold");
  return made;
}

function fence(token) {
  return node("mo", token === "." ? "" : token);
}

function plain(token) {
  if (/^\d/.test(token)) return node("mn", token);
  if (/^[A-Za-z]$/.test(token)) return node("mi", token);
  return node("mo", token === "-" ? "\u2212" : token === "'" ? "\u2032" : token);
}
