// A cloud of runs: many motions from starts that scatter normally about one, as points of a frame over time and as
// bands of quantiles. The numbers are random, and the same for the same seed.

import { byUnit } from "./charts.js";
import { framePose } from "./inverse_kinematics.js";
import { place } from "./poses.js";
import { normal, seeded } from "./random_numbers.js";

const BANDS = [
  [0.05, 0.95],
  [0.25, 0.75],
];
const PATHS = 60; // runs whose paths are drawn
const MOST_CURVES = 8; // coordinates with bands

export class RunCloud {
  // start: { q, qd }; drives as of kernel.advance; step, seconds [s]; spread, spread_qd: standard deviations [rad, m;
  // per s]
  constructor(
    app,
    { start, drives, step, friction = null, seconds, runs, spread, spreadVelocity, samples = 61, frame, seed = 1 },
  ) {
    const { nq, nv } = app.model;
    this.app = app;
    this.start = start;
    this.drives = drives;
    this.step = step;
    this.friction = friction;
    this.seconds = seconds;
    this.runs = runs;
    this.spread = spread;
    this.spreadVelocity = spreadVelocity;
    this.samples = samples;
    this.frame = frame;
    this.seed = seed;
    this.t = Float64Array.from({ length: samples }, (_, k) => (seconds * k) / (samples - 1));
    this.points = new Float64Array(3 * runs * samples).fill(NaN);
    this.q = new Float64Array(nq * runs * samples).fill(NaN);
    this.starts = { q: new Float64Array(nq * runs), qd: new Float64Array(nv * runs) };
    this.count = 0;
    this.failed = 0;
    this.bands = null;
  }

  // Compute all runs; the first one is that of the start itself. A generator: it yields after every sample.
  *compute() {
    const { app, samples, runs, t, step, seconds } = this;
    const { kernel, model } = app;
    const random = normal(seeded(1 + (this.seed % 2147483646)));
    const steps = Math.max(1, Math.ceil(seconds / (samples - 1) / step - 1e-9));
    for (let run = 0; run < runs; run++) {
      const scatter = (size) => Float64Array.from({ length: model.nv }, () => (run ? size * random() : 0));
      const closed = kernel.close(kernel.integrate(this.start.q, scatter(this.spread)));
      const away = scatter(this.spreadVelocity);
      const qd = kernel.closeVelocities(
        closed.q,
        Float64Array.from(this.start.qd, (x, k) => x + away[k]),
      );
      this.starts.q.set(closed.q, run * model.nq);
      this.starts.qd.set(qd, run * model.nv);
      const state = kernel.begin(closed.q, qd, 0, this.friction);
      let good = closed.closed;
      for (let k = 0; k < samples && good; k++) {
        if (k) {
          good = kernel.advance(state, seconds / (samples - 1) / steps, steps, this.drives);
          state.t = t[k];
        }
        if (!good) break;
        this.q.set(state.q, (run * samples + k) * model.nq);
        this.points.set(place(framePose(kernel, state.q, this.frame)), 3 * (run * samples + k));
        yield;
      }
      if (!good) this.failed += 1;
      this.count = run + 1;
    }
    this.bands = null;
  }

  // The sample nearest to a time.
  sampleAt(time) {
    return Math.min(this.samples - 1, Math.max(0, Math.round((time / this.seconds) * (this.samples - 1))));
  }

  // Points of all runs at a time, and the paths of some of them.
  lines(time) {
    const { app, samples, count, points } = this;
    const { size, camera } = app.data.scene;
    const up = camera.axes[2].map((x) => 0.005 * size * x);
    const k = this.sampleAt(time);
    const dots = new Float32Array(6 * count);
    for (let run = 0; run < count; run++) {
      const at = 3 * (run * samples + k);
      for (let i = 0; i < 3; i++) [dots[6 * run + i], dots[6 * run + 3 + i]] = [points[at + i], points[at + i] + up[i]];
    }
    const { trail, accent } = app.stage.palette;
    const paths = Array.from({ length: Math.min(PATHS, count) }, (_, run) => ({
      points: Float32Array.from(points.subarray(3 * run * samples, 3 * (run * samples + k + 1))).filter(
        Number.isFinite,
      ),
      strip: true,
      color: [...trail.slice(0, 3), 0.14],
      width: 1,
    }));
    return [...paths, { points: dots.filter(Number.isFinite), color: [...accent.slice(0, 3), 0.75], width: 3.5 }];
  }

  // Bands of 5 to 95 % and 25 to 75 % of the runs, with medians: of the point, and of the coordinates.
  charts() {
    if (this.count < 4) return [];
    const { model } = this.app;
    this.bands ||= {
      point: [0, 1, 2].map((i) => this.quantiles(this.points, 3, i)),
      q: model.coordinates.map((_, i) => (i < MOST_CURVES ? this.quantiles(this.q, model.nq, i) : null)),
      count: this.count,
    };
    const series = (found, name, tone) => [
      ...BANDS.map(([low, high], b) => ({
        name: `${name}, ${100 * low} to ${100 * high} %`,
        t: this.t,
        values: found[2 * b],
        upper: found[2 * b + 1],
        tone,
        alpha: 0.12 + 0.1 * b,
      })),
      { name: `${name}, median`, t: this.t, values: found[2 * BANDS.length], tone },
    ];
    const shown = model.coordinates.slice(0, MOST_CURVES);
    return [
      {
        title: `cloud of ${this.frame.name}`,
        unit: "m",
        series: ["x", "y", "z"].flatMap((name, i) => series(this.bands.point[i], name, i)),
      },
      ...byUnit(
        "position",
        shown.map((c) => c.unit),
        (k) => k,
      ).map((chart) => ({
        ...chart,
        title: `cloud: ${chart.title}`,
        series: chart.series.flatMap((k, tone) => series(this.bands.q[k], shown[k].label, tone)),
      })),
    ];
  }

  // [low, high, low, high, ..., median] over the samples, of one entry of rows.
  quantiles(values, stride, offset) {
    const parts = [...BANDS.flat(), 0.5];
    const out = parts.map(() => new Float64Array(this.samples).fill(NaN));
    for (let k = 0; k < this.samples; k++) {
      const sorted = Float64Array.from(
        { length: this.count },
        (_, run) => values[(run * this.samples + k) * stride + offset],
      )
        .filter(Number.isFinite)
        .sort();
      if (sorted.length)
        parts.forEach((part, j) => {
          out[j][k] = quantile(sorted, part);
        });
    }
    return out;
  }
}

// Linear between the ordered numbers, as numpy.quantile.
function quantile(sorted, part) {
  const at = part * (sorted.length - 1);
  const low = Math.floor(at);
  return sorted[low] + (at - low) * ((sorted[low + 1] ?? sorted[low]) - sorted[low]);
}
