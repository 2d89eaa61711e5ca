import test from "node:test";

import { between, LAWS, spline, tabulated } from "../../../src/kinetree/page/js/joint_motions.js";
import { cases, close } from "./cases.mjs";

test("laws begin and end at rest, and their rates are derivatives", () => {
  for (const [name, law] of Object.entries(LAWS)) {
    close(law(0).slice(0, 2), [0, 0], 1e-15, `${name} at the start`);
    close(law(1).slice(0, 2), [1, 0], 1e-14, `${name} at the end`);
    for (const u of [0.07, 0.21, 0.48, 0.71, 0.93]) {
      const h = 1e-5;
      const slope = (k) => (law(u + h)[k] - law(u - h)[k]) / (2 * h);
      close(slope(0), law(u)[1], 1e-9, `${name}: rate at ${u}`);
      close(slope(1), law(u)[2], 1e-8, `${name}: second derivative at ${u}`);
    }
  }
});

test("motions between two positions take their time", () => {
  const samples = between("quintic", [0.2, -1.3], [1.7, 0.4], 2.5, 51);
  close(samples[50].q, [1.7, 0.4], 1e-15, "end");
  close(samples[50].t, 2.5, 0, "duration");
  const middle = samples[25];
  close(middle.qd, [(1.875 * 1.5) / 2.5, (1.875 * 1.7) / 2.5], 1e-14, "velocity in the middle");
});

test("splines are SciPy's", () => {
  const points = cases.points.map((p) => Float64Array.from(p));
  const made = { clamped: spline(cases.t, points, 41), natural: tabulated({ t: cases.t, q: points }, 41) };
  for (const [end, samples] of Object.entries(made))
    ["q", "qd", "qdd"].forEach((name, k) =>
      close(
        samples.flatMap((s) => Array.from(s[name])),
        cases.splines[end][k],
        1e-13,
        `${end}: ${name}`,
      ),
    );
});
