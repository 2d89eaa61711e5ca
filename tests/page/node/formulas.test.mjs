import assert from "node:assert/strict";
import test from "node:test";

import { evaluate } from "../../../src/kinetree/page/js/formulas.js";
import { cases, close } from "./cases.mjs";

test("trees have the values of their formulas in Python", () => {
  for (const { tree, value } of cases.formulas) close(evaluate(tree, cases.names), value, 4e-16, JSON.stringify(tree));
});

test("names of Object and unknown names are refused", () => {
  for (const name of ["constructor", "__proto__", "mass.link9"])
    assert.throws(() => evaluate(["name", name], cases.names), new RegExp(`unknown name ${name}`));
});

test("places that do not fit an array are refused", () => {
  assert.throws(() => evaluate(["entry", ["name", "q"], 0, 1], cases.names), /1 dimensions has 2 places/);
});
