import assert from "node:assert/strict";
import test from "node:test";

import { inForm, motionsOf, poseOfRow } from "../../../src/kinetree/page/js/dh.js";
import { urdfText } from "../../../src/kinetree/page/js/model_files.js";
import { anglesOf, poseOfAngles, product } from "../../../src/kinetree/page/js/poses.js";
import { firstTable } from "../../../src/kinetree/page/js/table.js";
import { cases, close } from "./cases.mjs";

const tables = cases.tables.map(({ table, poses }) => ({ table: firstTable(table, { loops: [] }), poses }));

// Tx(a) Rx(alpha) of the base or the end of a table.
const linkOf = (part) => poseOfRow({ form: "standard", theta: 0, b: 0, a: 0, alpha: 0, ...part });
const tip = ({ rows, base, end, form }) => {
  const first = base ? linkOf(base) : linkOf({});
  const whole = rows.reduce((T, row) => product(T, poseOfRow(row)), first);
  return form === "modified" && end ? product(whole, linkOf(end)) : whole;
};

test("a table in the other convention has the same end, and returns", () => {
  for (const { table } of tables) {
    const other = inForm(table, table.form === "standard" ? "modified" : "standard");
    if (!table.open) close(tip(other), Array.from(tip(table)), 1e-14, "pose of the end"); // otherwise it has no frame
    const back = inForm(other, table.form);
    back.rows.forEach((row, k) => {
      close(poseOfRow(row), Array.from(poseOfRow(table.rows[k])), 1e-14, `row ${k}`);
      close([...row.com, ...row.inertia], [...table.rows[k].com, ...table.rows[k].inertia], 1e-14, `mass of row ${k}`);
    });
  }
});

test("bodies of modified tables stand where the library has them", () => {
  for (const { table, poses } of tables) {
    const { rows, base, form } = inForm(table, "modified");
    if (table.form !== "modified" || form !== "modified") continue;
    let T = base ? linkOf(base) : linkOf({});
    rows.forEach((row, k) => close((T = product(T, poseOfRow(row))), poses[k], 1e-14, `body ${k}`));
  }
});

test("motions of a row end at its pose", () => {
  for (const { table } of tables)
    for (const row of table.rows) {
      const whole = motionsOf(row).reduce((T, motion) => product(T, motion.of(motion.value)), linkOf({}));
      close(whole, Array.from(poseOfRow(row)), 0, "pose");
    }
});

test("angles of a pose make it again, also where pitch is a right angle", () => {
  for (const angles of [
    [0.3, -1.2, 2.1],
    [-2.9, 1.4, -0.2],
    [0.4, Math.PI / 2, 1.1],
  ]) {
    const T = poseOfAngles([0.1, -0.7, 0.9, ...angles]);
    close(poseOfAngles(anglesOf(T)), Array.from(T), 1e-14, `angles ${angles}`);
  }
});

test("URDF has the library's text, with the numbers of the model", () => {
  const split = (text) => text.split(/["\s]+/).map((word) => (Number.isNaN(Number(word)) ? word : Number(word)));
  for (const { table, model, urdf } of cases.tables) {
    const [found, expected] = [split(urdfText(table.urdf, model)), split(urdf)];
    assert.equal(found.length, expected.length);
    found.forEach((word, k) => {
      if (typeof word === "number") close(word, expected[k], 1e-15, `number ${k}`);
      else assert.equal(word, expected[k]);
    });
  }
});
