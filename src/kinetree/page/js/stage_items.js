// What a stage draws of a scene: bodies and rods, axes of frames, and the floor.

import {
  IDENTITY,
  add,
  ballMatrix,
  dot,
  fromRows,
  multiply,
  originOf,
  rodMatrix,
  scale,
  transform,
} from "./vectors.js";

const AXES = [
  [0.8, 0.2, 0.15, 1],
  [0.15, 0.6, 0.2, 1],
  [0.15, 0.35, 0.85, 1],
];

// Bodies, the ground, and rods, springs and other solids between points; those of hidden bodies are left out, the
// picked one is tinted.
export function bodyItems(stage, { matrices, hidden, picked = -1 }, alpha = 1) {
  const { ranges, rods, cuts } = stage.scene;
  const thick = stage.view?.unit ?? 1;
  const ground = matrices.length;
  const tint = stage.palette?.accent.slice(0, 3);
  const out = [];
  [...matrices, IDENTITY].forEach((matrix, i) => {
    if (hidden?.has(i) || (i === ground && alpha < 1)) return;
    out.push({
      matrix,
      first: ranges[i][0],
      count: ranges[i][1],
      body: i === ground ? -1 : i,
      color: i === picked ? tint : undefined,
      alpha,
    });
  });
  for (const { loop, end, solid } of cuts) {
    const { a, b, pose_a, pose_b } = stage.model.loops[loop];
    const body = end ? b : a;
    if (hidden?.has(body) || (body < 0 && alpha < 1)) continue;
    const matrix =
      body < 0 ? fromRows(end ? pose_b : pose_a) : multiply(matrices[body], fromRows(end ? pose_b : pose_a));
    out.push({
      matrix,
      first: ranges[solid][0],
      count: ranges[solid][1],
      body,
      color: body >= 0 && body === picked ? tint : undefined,
      alpha,
    });
  }
  for (const rod of rods) {
    const owner = rod.a < 0 ? rod.b : rod.a;
    if (hidden?.has(owner) || (rod.a < 0 && alpha < 1)) continue;
    const [from, to] = [
      [rod.a, rod.pa],
      [rod.b, rod.pb],
    ].map(([k, p]) => (k < 0 ? p : transform(matrices[k], p)));
    const color = rod.a >= 0 && rod.a === picked ? tint : rod.color;
    const matrix = rodMatrix(from, to, thick * rod.radius);
    out.push({ ...stage.solid(rod.solid), matrix, color, body: rod.a, alpha, isBeam: rod.isBeam && alpha === 1 });
    if (rod.pin)
      for (const at of [from, to])
        out.push({ ...stage.solid("ball"), matrix: ballMatrix(at, thick * rod.pin), color, body: rod.a, alpha });
  }
  return out;
}

// Matrices of the named frames.
export function frameMatrices(model, matrices) {
  return model.frames.map(({ body, pose }) => {
    const place = fromRows(pose);
    return body < 0 ? place : multiply(matrices[body], place);
  });
}

const SEEN = 0.93; // of the reach of a floor: beyond it lines are nearly clear, and take time to draw

// A grid about the target, which fades out.
export function floorLines({ scene, palette }, target) {
  const { cell, floor, camera } = scene;
  const [e1, e2, up] = camera.axes;
  const cells = 14;
  const reach = cells * cell;
  const middle = [e1, e2].map((e) => Math.round(dot(target, e) / cell) * cell);
  const place = (x, y) => add(scale(floor, up), add(scale(middle[0] + x, e1), scale(middle[1] + y, e2)));
  const points = [];
  for (let k = 1 - cells; k < cells; k++) {
    const x = k * cell;
    const far = Math.sqrt(Math.max(0, (SEEN * reach) ** 2 - x * x));
    if (!far) continue;
    points.push(...place(x, -far), ...place(x, 0), ...place(x, 0), ...place(x, far));
    points.push(...place(-far, x), ...place(0, x), ...place(0, x), ...place(far, x));
  }
  return { points: new Float32Array(points), color: palette.floor, middle: place(0, 0), reach };
}

export function axisLines(matrices, length) {
  return AXES.map((color, k) => {
    const points = matrices.flatMap((m) => {
      const from = originOf(m);
      return [...from, ...add(from, scale(length, [m[4 * k], m[4 * k + 1], m[4 * k + 2]]))];
    });
    return { points: new Float32Array(points), color, width: 2 };
  });
}
