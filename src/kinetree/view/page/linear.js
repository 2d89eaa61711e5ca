// Small dense linear algebra on rows in Float64Arrays.

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
