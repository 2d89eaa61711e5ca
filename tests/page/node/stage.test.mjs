import test from "node:test";
import assert from "node:assert/strict";

import { TAIL, Trails } from "../../../src/kinetree/page/js/trails.js";
import { putSegments } from "../../../src/kinetree/page/js/webgl.js";
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
