// Singular values by one-sided rotations of Jacobi: small matrices, every digit.

const SWEEPS = 60;

// A [m, n] by rows: { values [n], largest first, left: n columns of m numbers, right: n columns of n numbers } with
// A = sum of values[k] left[k] right[k]^T. Where a value is zero, right[k] is a direction that A does not see, and left[k] is zero.
export function singularValues(A, m, n) {
  const U = Array.from({ length: n }, (_, k) => Float64Array.from({ length: m }, (_unused, i) => A[i * n + k]));
  const V = Array.from({ length: n }, (_, k) => Float64Array.from({ length: n }, (_unused, i) => (i === k ? 1 : 0)));
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    let turned = false;
    for (let p = 0; p < n; p++) {
      for (let q = p + 1; q < n; q++) {
        const [a, b, c] = [dot(U[p], U[p]), dot(U[q], U[q]), dot(U[p], U[q])];
        if (Math.abs(c) <= 1e-16 * Math.sqrt(a * b) || c === 0) continue;
        turned = true;
        const zeta = (b - a) / (2 * c);
        const t = Math.sign(zeta || 1) / (Math.abs(zeta) + Math.sqrt(1 + zeta * zeta));
        const cosine = 1 / Math.sqrt(1 + t * t);
        rotate(U[p], U[q], cosine, cosine * t);
        rotate(V[p], V[q], cosine, cosine * t);
      }
    }
    if (!turned) break;
  }
  const sizes = U.map((column) => Math.sqrt(dot(column, column)));
  const order = [...Array(n).keys()].sort((i, j) => sizes[j] - sizes[i]);
  return {
    values: Float64Array.from(order, (k) => sizes[k]),
    left: order.map((k) => U[k].map((x) => (sizes[k] > 0 ? x / sizes[k] : 0))),
    right: order.map((k) => V[k]),
  };
}

// How many values are above a part of the largest one.
export function rankOf(values, part = 1e-9) {
  let rank = 0;
  while (rank < values.length && values[rank] > part * values[0]) rank += 1;
  return rank;
}

// The smallest x with A x = b in the sense of least squares.
export function leastSquares({ values, left, right }, b, rank) {
  const x = new Float64Array(right[0]?.length ?? 0);
  for (let k = 0; k < rank; k++) {
    const along = dot(left[k], b) / values[k];
    for (let i = 0; i < x.length; i++) x[i] += along * right[k][i];
  }
  return x;
}

export function dot(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
}

function rotate(x, y, c, s) {
  for (let i = 0; i < x.length; i++) {
    const [a, b] = [x[i], y[i]];
    x[i] = c * a - s * b;
    y[i] = s * a + c * b;
  }
}
