// Compare two scripts: the same syntax, the same names of properties and of the browser, and variables that differ in
// their names alone. Every variable of one script corresponds to one of the other, by their declarations.
//
// node same_program.mjs FOLDER_OF_PRETTIER FILE FILE

import { readFileSync } from "node:fs";
import process from "node:process";
import { pathToFileURL } from "node:url";

const [folder, ...files] = process.argv.slice(2);
const { parsers } = await import(pathToFileURL(`${folder}/plugins/acorn.mjs`));

const PLACES = ["range", "start", "end", "loc", "comments", "tokens", "__contentEnd"];
const IGNORED = new Set([...PLACES, "sourceType", "raw", "shorthand", "extra"]);
const FUNCTIONS = ["FunctionDeclaration", "FunctionExpression", "ArrowFunctionExpression"];
const SCOPES = ["Program", "BlockStatement", "ForStatement", "ForOfStatement", "ForInStatement", "SwitchStatement"];

/** Prettier keeps parentheses behind a type in a comment as nodes. */
const inner = (part) => (part?.type === "ParenthesizedExpression" ? inner(part.expression) : part);

/** Return the parts of a node as [place, part], in the order of their places. */
function parts(node) {
  const found = [];
  for (const key of Object.keys(node).toSorted()) {
    if (IGNORED.has(key) || (key === "value" && node.type === "TemplateElement")) continue;
    if (Array.isArray(node[key])) node[key].forEach((part, k) => found.push([`${key}.${k}`, inner(part)]));
    else found.push([key, inner(node[key])]);
  }
  return found;
}

const isNode = (part) => part !== null && typeof part === "object" && typeof part.type === "string";

/** Whether the part of a node at a place is the name of a property: such a name stays. */
function namesProperty(node, place) {
  if (node.computed) return false;
  if (node.type === "MemberExpression") return place === "property";
  return place === "key" && ["Property", "MethodDefinition", "PropertyDefinition"].includes(node.type);
}

/** Return the names that a pattern binds, as nodes. */
function bound(pattern) {
  if (!pattern) return [];
  if (pattern.type === "Identifier") return [pattern];
  if (pattern.type === "ObjectPattern") return pattern.properties.flatMap((p) => bound(p.value ?? p.argument));
  if (pattern.type === "ArrayPattern") return pattern.elements.flatMap(bound);
  return bound(pattern.left ?? pattern.argument);
}

/** Return the declarations of a scope by name: those of its own statements, and of a function's parameters. */
function declarations(node) {
  const found = FUNCTIONS.includes(node.type) ? node.params.flatMap(bound) : [];
  if (node.type === "FunctionExpression" && node.id) found.push(node.id);
  if (node.type === "CatchClause") found.push(...bound(node.param));
  const own = SCOPES.includes(node.type) ? [node.body, node.init, node.left, node.cases?.map((c) => c.consequent)] : [];
  for (const one of own.flat(2)) {
    if (one?.type === "VariableDeclaration") found.push(...one.declarations.flatMap((d) => bound(d.id)));
    if (["FunctionDeclaration", "ClassDeclaration"].includes(one?.type)) found.push(one.id);
  }
  return new Map(found.map((name) => [name.name, name]));
}

/** Return the declaration of every identifier that is a variable: undefined for those of the browser. */
function resolved(program) {
  const found = new Map();
  const visit = (node, scopes) => {
    const own = [...SCOPES, ...FUNCTIONS, "CatchClause"].includes(node.type) ? [declarations(node)] : [];
    const inside = [...own, ...scopes];
    for (const [place, part] of parts(node)) {
      if (!isNode(part) || namesProperty(node, place)) continue;
      if (part.type === "Identifier") found.set(part, inside.find((names) => names.has(part.name))?.get(part.name));
      else visit(part, inside);
    }
  };
  visit(program, []);
  return found;
}

const [long, short] = files.map((file) => parsers.acorn.parse(readFileSync(file, "utf8"), { filepath: file }));
const [before, after] = [long, short].map(resolved);
const partners = new Map();

function compare(a, b, trail) {
  const fail = (what) => {
    throw new Error(`${what}: ${trail}\n${JSON.stringify(a).slice(0, 300)}\n${JSON.stringify(b).slice(0, 300)}`);
  };
  if (!isNode(a)) {
    if (String(a) !== String(b)) fail("another value");
    return;
  }
  if (a.type !== b?.type) fail("other syntax");
  if (a.type === "TemplateElement" && a.value.cooked !== b.value.cooked) fail("another text");
  if (a.type === "Literal" && a.regex && (a.regex.pattern !== b.regex.pattern || a.regex.flags !== b.regex.flags))
    fail("another regular expression");
  const [these, those] = [parts(a), parts(b)];
  if (these.length !== those.length) fail("other parts");
  these.forEach(([place, part], k) => {
    const other = those[k][1];
    if (part?.type !== "Identifier" || other?.type !== "Identifier" || namesProperty(a, place))
      return compare(part, other, `${trail}/${a.type}.${place}`);
    const [one, two] = [before.get(part), after.get(other)];
    if (!one && !two && part.name !== other.name) fail(`the browser's ${part.name} became ${other.name}`);
    if (!one !== !two) fail(`only one of ${part.name} and ${other.name} is declared`);
    if (!partners.has(one)) partners.set(one, two);
    if (partners.get(one) !== two) fail(`${part.name} and ${other.name} are declared at different places`);
  });
}

compare(long, short, "");
if (new Set(partners.values()).size !== partners.size) throw new Error("two variables became one");
console.log(`${partners.size - 1} variables`);
