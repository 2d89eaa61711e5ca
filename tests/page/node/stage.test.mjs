import test from "node:test";
import assert from "node:assert/strict";

import { rangeOf } from "../../../src/kinetree/page/js/chart_paint.js";
import { motionCharts } from "../../../src/kinetree/page/js/charts.js";
import { stretchOf } from "../../../src/kinetree/page/js/framing.js";
import { shownArrows } from "../../../src/kinetree/page/js/stage_arrows.js";
import { TAIL, Trails } from "../../../src/kinetree/page/js/trails.js";
import { coarseFaces, putSegments } from "../../../src/kinetree/page/js/webgl.js";
import { close } from "./cases.mjs";

const TIPS = [
  [0, [0, 0, 0]],
  [0, [1, 0, 0]],
];
const FRAME = 1 / 60;

// A motion of one body whose origin is at `path(t)`.
function motionOf(count, { extend = undefined } = {}) {
  const find = (t) => {
    const index = Math.min(count - 1, Math.floor(t / FRAME + 1e-9));
    return { index, share: index + 1 < count ? t / FRAME - index : 0 };
  };
  return { count, cuts: 0, extend, find };
}
const path = (t) => [Math.cos(t), Math.sin(2 * t), 0.3 * t];
const matricesAt = (_, sample) => [Float32Array.from([1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, ...path(sample * FRAME), 1])];

test("trails of long motions have few points, and end at the body", () => {
  for (const count of [2, 100, 7200, 36000]) {
    for (const extend of [undefined, () => 0]) {
      const trails = new Trails(TIPS, matricesAt);
      const time = (count - 1) * FRAME;
      const lines = trails.of(motionOf(count, { extend }), time);
      assert.equal(lines.length, extend ? 2 : 4);
      assert.ok(lines.reduce((sum, line) => sum + line.points.length / 3, 0) < 5000, `${count} samples`);
      close(lines.at(-2).points.slice(-3), path(time), 1e-6, "end of the tail");
      const [x, y, z] = path(time);
      close(lines.at(-1).points.slice(-3), [x + 1, y, z], 1e-6, "end of the tail of the other point");
    }
  }
});

test("tails begin where the motion was four seconds before, and are computed once per sample", () => {
  let asked = 0;
  const trails = new Trails(TIPS, (motion, sample) => {
    asked += 1;
    return matricesAt(motion, sample);
  });
  const motion = motionOf(7200, { extend: () => 0 });
  for (let k = 0; k < 50; k++) {
    const time = 100 + k * FRAME;
    const [tail] = trails.of(motion, time);
    close(tail.points.slice(0, 3), path((6000 + k - TAIL + 2) * FRAME), 1e-5, "begin of the tail");
  }
  assert.equal(asked, TAIL + 49);
});

test("curves between samples are near the motion, and a cut motion is followed anew", () => {
  const trails = new Trails(TIPS, matricesAt);
  const motion = motionOf(60, { extend: () => 0 });
  const { points } = trails.of(motion, 40.5 * FRAME)[0];
  close(points.slice(-3), path(40.5 * FRAME), 1e-4, "between two samples, off by 6.8e-5");
  trails.matricesAt = (_, k) => matricesAt(_, k + 1000);
  close(trails.of(motion, 40 * FRAME)[0].points.slice(-3), path(40 * FRAME), 1e-6, "known samples");
  motion.cuts = 1;
  close(trails.of(motion, 40 * FRAME)[0].points.slice(-3), path(1040 * FRAME), 1e-6, "samples after the cut");
});

test("lines become corners in one array, and fade from their first point on", () => {
  const out = new Float32Array(200);
  const fading = {
    points: new Float32Array([0, 0, 0, 1, 0, 0, 1, 2, 0]),
    strip: true,
    color: [1, 0, 0, 0.8],
    fades: true,
  };
  const pair = { points: new Float32Array([5, 5, 5, 6, 6, 6]), color: [0, 1, 0, 1], width: 3 };
  const middle = putSegments(out, 0, fading, 2);
  assert.equal(middle, 2 * 4 * 11);
  assert.equal(putSegments(out, middle, pair, 2), 3 * 4 * 11);
  const corner = (k) => Array.from(out.subarray(11 * k, 11 * k + 11));
  close(corner(0), [0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 2], 1e-7, "first corner is clear");
  close(corner(2), [0, 0, 0, 1, 0, 0, 1, 0, 0, 0.4, 2], 1e-7, "second end of the first segment");
  close(corner(7), [1, 0, 0, 1, 2, 0, 1, 0, 0, 0.8, 2], 1e-7, "last corner has the whole color");
  close(corner(8), [5, 5, 5, 6, 6, 6, 0, 1, 0, 1, 6], 1e-7, "a line of pairs");
});

test("arrows of one group and unit share a scale, by which the longest has its length", () => {
  const arrow = (group, unit, x) => ({ group, unit, origin: [1, 0, 0], vector: [x, 0, 0], length: 0.5 });
  const arrows = [arrow("reactions", "N", 40000), arrow("reactions", "N", 100), arrow("drives", "N m", 1)];
  const shown = shownArrows({ arrows, show: {}, longest: 0.2 });
  close(
    shown.map((x) => x.long),
    [0.2, 0.2, 0.0005],
    1e-12,
    "lengths",
  );
  close(shown[0].tip, [1.2, 0, 0], 1e-12, "tip");
  close(shownArrows({ arrows, show: {} })[0].long, 20000, 1e-12, "without a limit");
});

test("sizes follow lengths that are four times longer or shorter", () => {
  const box = (x) => [
    [0, 0, 0],
    [x, 0, 0],
    [0, NaN, 0],
  ];
  for (const [length, factor] of [
    [1, 1],
    [3.9, 1],
    [0.26, 1],
    [400, 100],
    [4e30, 1e30],
    [1e-30, 4e-30],
    [0, 1],
  ])
    assert.ok(Math.abs(stretchOf(box(length), 1) / factor - 1) < 1e-12, `${length}`);
});

test("a momentum that only rounds is drawn flat, and one that changes is not", () => {
  const model = {
    bodies: [{ mass: 2, moments: [0.1, 0.1, 0.1] }],
    joints: [{ placement: [1, 0, 0, 3, 0, 1, 0, 4, 0, 0, 1, 0, 0, 0, 0, 1] }],
    coordinates: [],
    velocities: [],
    nq: 0,
    nv: 0,
  };
  const chartsOf = (change) => {
    const motion = { t: [0, 1], count: 2, q: [], qd: [] };
    motion.columns = [
      { name: "energy", labels: ["kinetic"], units: ["J"], values: [[9, 4]] },
      { name: "momentum", labels: ["px", "lx"], units: ["N s", "N m s"], values: Array(2).fill([1, 1 + change]) },
    ];
    return motionCharts(model, motion).filter((chart) => chart.group === "momentum");
  };
  for (const [change, flat] of [
    [1e-6, true],
    [0.5, false],
  ])
    for (const chart of chartsOf(change)) {
      const shown = chart.series.map((series) => ({ series }));
      const { low, high } = rangeOf(shown, (s) => [(k) => s.values[k]], chart.floor);
      assert.equal(change / (high - low) < 0.01, flat, `${chart.unit}: ${low} to ${high}`);
    }
  const [momentum, angular] = chartsOf(0);
  close([momentum.floor, angular.floor], [6e-3, 3e-2], 1e-12, "floors: 0.1 % of sqrt(2 m T), and 5 m of it");
});

test("shadows of meshes have few triangles, which cover what the meshes cover", () => {
  const n = 60; // squares along the edge of a sheet that waves
  const vertices = new Float32Array(9 * (n + 1) ** 2);
  for (let i = 0; i <= n; i++)
    for (let j = 0; j <= n; j++) vertices.set([i / n, j / n, 0.05 * Math.sin(i)], 9 * (i * (n + 1) + j));
  const faces = [];
  for (let i = 0; i < n; i++)
    for (let j = 0; j < n; j++) {
      const a = i * (n + 1) + j;
      faces.push(a, a + n + 1, a + 1, a + 1, a + n + 1, a + n + 2);
    }
  const made = coarseFaces({ vertices, faces: Uint32Array.from(faces) }, 0, faces.length, 12);
  assert.ok(made.length < 0.15 * faces.length, `${made.length} of ${faces.length}`);
  const place = (v) => [vertices[9 * v], vertices[9 * v + 1]];
  let area = 0;
  for (let k = 0; k < made.length; k += 3) {
    const [a, b, c] = [0, 1, 2].map((j) => place(made[k + j]));
    area += Math.abs((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])) / 2;
  }
  assert.ok(area > 0.9 && area < 1.1, `area ${area}`);
});

test("coarse meshes keep the sides of sharp edges apart", () => {
  const n = 40; // squares along the edges of a wall on a floor, each with normals of its own
  const [points, faces] = [[], []];
  const sheet = (at, normal) => {
    const first = points.length;
    for (let i = 0; i <= n; i++) for (let j = 0; j <= n; j++) points.push([...at(i / n, j / n), ...normal, 0, 0, 0]);
    for (let i = 0; i < n; i++)
      for (let j = 0; j < n; j++) {
        const a = first + i * (n + 1) + j;
        faces.push(a, a + n + 1, a + 1, a + 1, a + n + 1, a + n + 2);
      }
  };
  sheet((x, y) => [x, y, 0], [0, 0, 1]);
  sheet((y, z) => [0, y, z], [1, 0, 0]);
  const made = coarseFaces(
    { vertices: Float32Array.from(points.flat()), faces: Uint32Array.from(faces) },
    0,
    faces.length,
    8,
  );
  assert.ok(made.length < 0.1 * faces.length, `${made.length} of ${faces.length}`);
  for (let k = 0; k < made.length; k += 3) {
    const sides = new Set([0, 1, 2].map((j) => points[made[k + j]].slice(3, 6).join()));
    assert.equal(sides.size, 1, "a triangle with two normals");
  }
});
