import assert from "node:assert/strict";
import test from "node:test";

import { degreesOf, valueOf } from "../../../src/kinetree/page/js/expressions.js";
import { adaptedMasses } from "../../../src/kinetree/page/js/table.js";
import { cases, close } from "./cases.mjs";

test("typed expressions have the values of Python", () => {
  for (const { text, value } of cases.typed) close(valueOf(text), value, 1e-15, text);
  close(degreesOf("pi/2"), 90, 1e-15, "an angle with pi is in radians");
  close(degreesOf("180/4"), 45, 0, "another one in degrees");
});

test("texts that are no expressions are refused", () => {
  const wrong = [
    "",
    " ",
    "1/",
    "(1",
    "1)",
    "2 3",
    "pi pi",
    "alert(1)",
    "constructor(1)",
    "a",
    "1;2",
    "0x10",
    "1..2",
    "sin 1",
  ];
  for (const text of [...wrong, "-".repeat(1000), "(".repeat(90) + "1" + ")".repeat(90), "1+".repeat(500) + "1"])
    assert.ok(Number.isNaN(valueOf(text)), text);
});

test("masses follow a changed mass and length as those of a rod do", () => {
  for (const { first, now, adapted } of cases.adapted) {
    const found = adaptedMasses(first, now, 1);
    close([...found.adapted.com, ...found.adapted.inertia], adapted, 1e-14, first.form);
    assert.deepEqual(
      found.reasons.map((x) => x.split(" ").slice(0, 2).join(" ").toLowerCase()),
      ["the mass", "the length"],
    );
    const rows = now.rows.map((row, i) => (i === 1 ? { ...row, ...found.adapted } : row));
    assert.deepEqual(adaptedMasses(first, { ...now, rows }, 1).reasons, [], "the reader adapted it");
  }
});
