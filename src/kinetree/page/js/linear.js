// Small dense linear algebra: matrices are arrays of numbers row by row.

const SWEEPS = 60; // of rotations, far more than they take

// Solve A x = b for a symmetric positive definite A [n, n], which is overwritten; null where it is not one.
export function solveSymmetric(A, b, n) {
  for (let j = 0; j < n; j++) {
    let d = A[j * n + j];
    for (let k = 0; k < j; k++) d -= A[j * n + k] ** 2;
    if (!(d > 0)) return null;
    const root = (A[j * n + j] = Math.sqrt(d));
    for (let i = j + 1; i < n; i++) {
      let sum = A[i * n + j];
      for (let k = 0; k < j; k++) sum -= A[i * n + k] * A[j * n + k];
      A[i * n + j] = sum / root;
    }
  }
  const x = Float64Array.from(b);
  for (let i = 0; i < n; i++) {
    for (let k = 0; k < i; k++) x[i] -= A[i * n + k] * x[k];
    x[i] /= A[i * n + i];
  }
  for (let i = n - 1; i >= 0; i--) {
    for (let k = i + 1; k < n; k++) x[i] -= A[k * n + i] * x[k];
    x[i] /= A[i * n + i];
  }
  return x;
}

// The smallest x, weighted by w, with J x = b in the sense of least squares, for J [m, n]; `damping` relative to J J^T.
export function smallestStep(J, b, m, n, w, damping = 1e-12) {
  const G = new Float64Array(m * m);
  let trace = 0;
  for (let i = 0; i < m; i++) {
    for (let j = 0; j <= i; j++) {
      let sum = 0;
      for (let k = 0; k < n; k++) sum += J[i * n + k] * w[k] * J[j * n + k];
      G[i * m + j] = G[j * m + i] = sum;
    }
    trace += G[i * m + i];
  }
  for (let tries = 0, extra = damping; tries < 8; tries++, extra *= 1e2) {
    const shifted = Float64Array.from(G);
    for (let i = 0; i < m; i++) shifted[i * m + i] += extra * (trace / m) + 1e-300;
    const y = solveSymmetric(shifted, b, m);
    if (!y || !y.every(Number.isFinite)) continue;
    const x = new Float64Array(n);
    for (let k = 0; k < n; k++) for (let i = 0; i < m; i++) x[k] += w[k] * J[i * n + k] * y[i];
    return x;
  }
  return new Float64Array(n);
}

// Singular values by one-sided rotations of Jacobi: small matrices, every digit.
//
// A [m, n] by rows: { values [n], largest first, left: n columns of m numbers, right: n columns of n numbers } with
// A = sum of values[k] left[k] right[k]^T. Where a value is zero, right[k] is a direction that A does not see, and
// left[k] is zero.
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

// Eigenvalues, largest first, and eigenvectors of a symmetric matrix [n, n], by Jacobi's rotations.
export function eigen(matrix, n) {
  const A = Float64Array.from(matrix);
  const V = new Float64Array(n * n);
  for (let k = 0; k < n; k++) V[k * n + k] = 1;
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    let off = 0;
    for (let p = 0; p < n; p++) for (let q = p + 1; q < n; q++) off += A[p * n + q] ** 2;
    if (off < 1e-300) break;
    for (let p = 0; p < n; p++) {
      for (let q = p + 1; q < n; q++) {
        if (A[p * n + q] === 0) continue;
        const theta = (A[q * n + q] - A[p * n + p]) / (2 * A[p * n + q]);
        const t = Math.sign(theta || 1) / (Math.abs(theta) + Math.sqrt(theta * theta + 1));
        const [c, s] = [1 / Math.sqrt(t * t + 1), t / Math.sqrt(t * t + 1)];
        for (let k = 0; k < n; k++) turnPair(A, k * n + p, k * n + q, c, s);
        for (let k = 0; k < n; k++) turnPair(A, p * n + k, q * n + k, c, s);
        for (let k = 0; k < n; k++) turnPair(V, k * n + p, k * n + q, c, s);
      }
    }
  }
  const order = [...Array(n).keys()].sort((i, j) => A[j * n + j] - A[i * n + i]);
  return {
    values: order.map((k) => A[k * n + k]),
    vectors: order.map((k) => Array.from({ length: n }, (_, i) => V[i * n + k])),
  };
}

function turnPair(A, i, j, c, s) {
  const [x, y] = [A[i], A[j]];
  A[i] = c * x - s * y;
  A[j] = s * x + c * y;
}
