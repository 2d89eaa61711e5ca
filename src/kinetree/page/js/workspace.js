// The workspace of a frame: points that it reaches with random positions of the joints, colored by manipulability.

import { frameJacobian, framePose, randomPosition } from "./inverse_kinematics.js";
import { translationMeasure } from "./manipulability.js";
import { place } from "./poses.js";

const MOST = 4000;
const PATIENCE = 16; // [ms] of computation within a frame of the screen
const SHADES = [
  [0.27, 0.2, 0.5],
  [0.2, 0.45, 0.6],
  [0.2, 0.65, 0.5],
  [0.85, 0.75, 0.25],
];

// More points: { x, measure } each; `done` once there are enough. In closed mechanisms only closed positions count.
export function sampleCloud(app, frame, before) {
  const { kernel, model } = app;
  const began = performance.now();
  const out = before.slice();
  let tries = before.tries || 0;
  while (out.length < MOST && tries < 3 * MOST && performance.now() - began < PATIENCE) {
    tries += 1;
    const made = kernel.close(randomPosition(app));
    if (!made.closed) continue;
    const measure = model.closed ? 0 : translationMeasure(app, frame, frameJacobian(kernel, made.q, frame));
    out.push({ x: place(framePose(kernel, made.q, frame)), measure });
  }
  return Object.assign(out, { tries, done: out.length >= MOST || tries >= 3 * MOST });
}

// The points as short lines, in four shades from little to much manipulability.
export function cloudLines(app, cloud) {
  const length = 0.004 * app.data.scene.size;
  const [, , up] = app.data.scene.camera.axes;
  const most = Math.max(...cloud.map((p) => p.measure), 1e-300);
  return SHADES.map((color, k) => {
    const points = cloud
      .filter((p) => Math.min(3, Math.floor((4 * p.measure) / most)) === k)
      .flatMap(({ x }) => [...x, ...x.map((c, i) => c + length * up[i])]);
    return { points: new Float32Array(points), color: [...color, 0.8], width: 3 };
  }).filter((line) => line.points.length);
}
