import assert from "node:assert/strict";
import test from "node:test";

import * as linear from "../../../src/kinetree/page/js/linear.js";
import { cases, close } from "./cases.mjs";

const product = (A, x, m, n) => Array.from({ length: m }, (_, i) => linear.dot(A.slice(i * n, i * n + n), x));

test("singular values, ranks and least squares are NumPy's", () => {
  for (const { A, m, n, b, values, rank, x } of cases.cases) {
    const found = linear.singularValues(A, m, n);
    close(found.values.slice(0, values.length), values, 1e-14, "values");
    assert.equal(linear.rankOf(found.values, 1e-13), rank);
    close(linear.leastSquares(found, b, rank), x, 1e-9, "least squares");
  }
});

test("directions rebuild the matrix, and the last ones are not seen by it", () => {
  for (const { A, m, n, rank } of cases.cases) {
    const { values, left, right } = linear.singularValues(A, m, n);
    const rebuilt = Float64Array.from(A, (_, k) =>
      values.reduce((sum, s, j) => sum + s * left[j][Math.floor(k / n)] * right[j][k % n], 0),
    );
    close(rebuilt, A, 1e-14, "U S V^T");
    for (const v of right.slice(rank)) close(product(A, v, m, n), new Array(m).fill(0), 1e-12, "null space");
    for (const v of right) close(linear.dot(v, v), 1, 1e-14, "length of a direction");
  }
});

test("a positive definite system is solved, another one is refused", () => {
  const { S, b, x } = cases.symmetric;
  close(linear.solveSymmetric(Float64Array.from(S), b, 4), x, 1e-12, "solution");
  assert.equal(linear.solveSymmetric(Float64Array.from([1, 2, 2, 1]), [1, 1], 2), null);
});

test("eigenvalues of an indefinite matrix are NumPy's", () => {
  const { S, values, vectors } = cases.eigen;
  const found = linear.eigen(S, 4);
  close(found.values, values, 1e-14, "eigenvalues");
  found.vectors.forEach((v, k) => close(Math.abs(linear.dot(v, vectors[k])), 1, 1e-13, `vector ${k}`));
});

test("the smallest step keeps velocities without weight", () => {
  const { A, m, n, b } = cases.cases[1];
  const weights = new Float64Array(n).fill(1);
  weights[2] = 0;
  const dq = linear.smallestStep(A, b, m, n, weights);
  assert.equal(dq[2], 0);
  close(product(A, dq, m, n), b, 1e-10, "what the step changes");
});
