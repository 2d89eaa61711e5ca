// Motions of joints as samples: cycloid, polynomials of degree 3 and 5, trapezoid of velocities, splines through
// points. A law maps u = t / T in [0, 1] to the part of the way with its first two derivatives with respect to u.

import { Motion } from "./motion.js";

const SAMPLES = 241;

export const LAWS = {
  cycloid(u) {
    const w = 2 * Math.PI;
    return [u - Math.sin(w * u) / w, 1 - Math.cos(w * u), w * Math.sin(w * u)];
  },
  cubic: (u) => [u * u * (3 - 2 * u), 6 * u * (1 - u), 6 - 12 * u],
  quintic: (u) => [u ** 3 * (10 + u * (-15 + 6 * u)), 30 * u * u * (1 - u) ** 2, 60 * u * (1 - u) * (1 - 2 * u)],
  // A third of the time each for acceleration, constant velocity and deceleration.
  trapezoid(u) {
    const a = 4.5;
    if (u < 1 / 3) return [(a / 2) * u * u, a * u, a];
    if (u > 2 / 3) return [1 - (a / 2) * (1 - u) ** 2, a * (1 - u), -a];
    return [1.5 * u - 0.25, 1.5, 0];
  },
};

// Samples of positions, velocities and accelerations from q0 to q1 by a law.
export const between = (law, q0, q1, duration, samples = SAMPLES) => legs(law, [0, duration], [q0, q1], samples);

// Samples through positions at times, from each to the next by a law, at rest in between.
export function legs(law, times, points, samples = SAMPLES) {
  return sampledPieces(times, samples, (i, s, h) => {
    const [part, rate, second] = LAWS[law](s);
    const way = Array.from(points[i + 1], (x, k) => x - points[i][k]);
    return {
      q: Float64Array.from(way, (d, k) => points[i][k] + part * d),
      qd: Float64Array.from(way, (d) => (rate * d) / h),
      qdd: Float64Array.from(way, (d) => (second * d) / h ** 2),
    };
  });
}

// Samples of a cubic spline through positions at times; rates are those of both ends, by default at rest.
export function spline(times, points, samples = SAMPLES, rates = null) {
  const slopes = slopesOf(times, points, rates || [0, 1].map(() => points[0].map(() => 0)));
  return sampledPieces(times, samples, (i, s, h) =>
    hermite(points[i], points[i + 1], slopes[i], slopes[i + 1], null, null, s, h),
  );
}

// Samples of a table: with velocities, cubics meet these; with accelerations, polynomials of degree 5 meet all.
export function tabulated({ t, q, qd, qdd }, samples = SAMPLES) {
  const rates = qd || slopesOf(t, q, null);
  return sampledPieces(t, samples, (i, s, h) =>
    hermite(q[i], q[i + 1], rates[i], rates[i + 1], qd && qdd ? qdd[i] : null, qd && qdd ? qdd[i + 1] : null, s, h),
  );
}

function sampledPieces(times, samples, piece) {
  const [first, last] = [times[0], times[times.length - 1]];
  let i = 0;
  return Array.from({ length: samples }, (_, k) => {
    const t = first + ((last - first) * k) / (samples - 1);
    while (i < times.length - 2 && t >= times[i + 1]) i += 1;
    const h = times[i + 1] - times[i];
    return { t, ...piece(i, Math.min(1, (t - times[i]) / h), h) };
  });
}

// Position, velocity and acceleration at the part s of an interval h, with given values at both ends.
function hermite(a, b, v, w, f, g, s, h) {
  const out = { q: new Float64Array(a.length), qd: new Float64Array(a.length), qdd: new Float64Array(a.length) };
  for (let k = 0; k < a.length; k++) {
    const [d, V, W] = [b[k] - a[k], v[k] * h, w[k] * h];
    let c = [a[k], V, 3 * d - 2 * V - W, V + W - 2 * d];
    if (f) {
      const [F, G] = [f[k] * h * h, g[k] * h * h];
      c = [
        a[k],
        V,
        F / 2,
        10 * d - 6 * V - 4 * W - (3 * F - G) / 2,
        -15 * d + 8 * V + 7 * W + (3 * F - 2 * G) / 2,
        6 * d - 3 * (V + W) - (F - G) / 2,
      ];
    }
    out.q[k] = c.reduceRight((x, y) => x * s + y, 0);
    out.qd[k] =
      c
        .map((x, p) => p * x)
        .slice(1)
        .reduceRight((x, y) => x * s + y, 0) / h;
    out.qdd[k] =
      c
        .map((x, p) => p * (p - 1) * x)
        .slice(2)
        .reduceRight((x, y) => x * s + y, 0) /
      h ** 2;
  }
  return out;
}

// Slopes of the cubic spline: continuous second derivatives; at the ends given slopes, or zero second derivatives.
function slopesOf(t, points, clamped) {
  const n = t.length;
  const h = Array.from({ length: n - 1 }, (_, i) => t[i + 1] - t[i]);
  const slopes = points.map((p) => new Float64Array(p.length));
  for (let k = 0; k < points[0].length; k++) {
    const y = points.map((p) => p[k]);
    const [low, mid, high, right] = [[], [], [], []];
    for (let i = 0; i < n; i++) {
      if (i === 0 || i === n - 1) {
        const j = i === 0 ? 0 : n - 2;
        low.push(clamped || i === 0 ? 0 : 1);
        mid.push(clamped ? 1 : 2);
        high.push(clamped || i > 0 ? 0 : 1);
        right.push(clamped ? clamped[i === 0 ? 0 : 1][k] : (3 * (y[j + 1] - y[j])) / h[j]);
      } else {
        low.push(h[i]);
        mid.push(2 * (h[i - 1] + h[i]));
        high.push(h[i - 1]);
        right.push(3 * ((h[i] * (y[i] - y[i - 1])) / h[i - 1] + (h[i - 1] * (y[i + 1] - y[i])) / h[i]));
      }
    }
    for (let i = 1; i < n; i++) {
      const factor = low[i] / mid[i - 1];
      mid[i] -= factor * high[i - 1];
      right[i] -= factor * right[i - 1];
    }
    for (let i = n - 1; i >= 0; i--) slopes[i][k] = (right[i] - (i < n - 1 ? high[i] * slopes[i + 1][k] : 0)) / mid[i];
  }
  return slopes;
}

// The motion of a list of samples.
export function motionOf(model, samples, name = "motion") {
  const out = new Motion(model, { name, capacity: samples.length });
  for (const { t, q, qd } of samples) out.push(t, q, qd);
  if (samples.every((s) => s.qdd)) out.accelerations = samples.map((s) => s.qdd);
  return out;
}

// From one position to another by a cycloid; close(q) returns { q } with closed loops.
export function cycloidTo(model, q0, q1, duration, close) {
  const samples = between("cycloid", q0, q1, duration).map((s) => ({ ...s, q: close(s.q).q }));
  const velocity = new Float64Array(model.nv);
  return motionOf(
    model,
    samples.map((s) => {
      const qd = velocity.slice();
      model.coordinates.forEach((c, k) => {
        if (c.velocity >= 0) qd[c.velocity] = s.qd[k];
      });
      return { t: s.t, q: s.q, qd };
    }),
    "path",
  );
}
