import assert from "node:assert/strict";
import test from "node:test";

import { principal } from "../../../src/kinetree/page/js/table.js";
import { inner } from "../../../src/kinetree/page/js/vectors.js";
import { appOf, cases, close } from "./cases.mjs";

const { kernel } = await appOf(cases.data);
const product = (A, x, m, n) => Array.from({ length: m }, (_, i) => inner(A.slice(i * n, i * n + n), x));

test("singular values, ranks and least squares are NumPy's", () => {
  for (const { A, m, n, b, values, rank, x } of cases.cases) {
    const found = kernel.decompose(A, m, n, { b, least: 1e-13 });
    close(found.values.slice(0, values.length), values, 1e-14, "values");
    assert.equal(found.rank, rank);
    close(found.x, x, 1e-9, "least squares");
  }
});

test("directions rebuild the matrix, and the last ones are not seen by it", () => {
  for (const { A, m, n, rank } of cases.cases) {
    const { values, left, right } = kernel.decompose(A, m, n);
    const rebuilt = Float64Array.from(A, (_, k) =>
      values.reduce((sum, s, j) => sum + s * left[j][Math.floor(k / n)] * right[j][k % n], 0),
    );
    close(rebuilt, A, 1e-14, "U S V^T");
    for (const v of right.slice(rank)) close(product(A, v, m, n), new Array(m).fill(0), 1e-12, "null space");
    for (const v of right) close(inner(v, v), 1, 1e-14, "length of a direction");
  }
});

test("damped steps are those of the normal equations", () => {
  const { A, m, n, b, damping, x } = cases.damped;
  close(kernel.decompose(A, m, n, { b, damping }).x, x, 1e-12, "step");
});

test("principal moments of an inertia that no body has are NumPy's", () => {
  const { inertia, moments, axes } = cases.inertia;
  const found = principal(kernel, inertia);
  close(found.moments, moments, 1e-14, "moments");
  found.axes.forEach((v, k) => close(Math.abs(inner(v, axes[k])), 1, 1e-13, `axis ${k}`));
});
