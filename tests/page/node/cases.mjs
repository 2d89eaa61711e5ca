// The library's numbers, and comparisons with them.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import process from "node:process";

import { unpacked } from "../../../src/kinetree/page/js/data.js";
import { openKernel } from "../../../src/kinetree/page/js/kernel.js";
import { Store } from "../../../src/kinetree/page/js/store.js";

export const cases = JSON.parse(readFileSync(process.env.KINETREE_CASES, "utf8"));

/** Compare numbers with a bound for their largest difference, in parts of the largest expected one, or of 1. */
export function close(found, expected, bound, label) {
  const all = typeof found === "number" ? [found] : Array.from(found);
  const y = [expected].flat(Infinity);
  assert.equal(all.length, y.length, `${label}: number of entries`);
  const scale = Math.max(1, ...y.map(Math.abs));
  const most = Math.max(0, ...all.map((value, k) => Math.abs(value - y[k]) / scale));
  assert.ok(most <= bound, `${label}: off by ${most}, bound ${bound}`);
}

/** What modules of the page share, without the picture. */
export async function appOf(text) {
  const data = await unpacked(text);
  const kernel = await openKernel(data.kernel, data.model, data.first.parameters, data.scene.size);
  const store = new Store();
  store.define("q", data.first.q);
  return { data, model: data.model, kernel, store };
}
