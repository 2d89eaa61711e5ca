// A handle at a frame: a ball that is dragged in the plane of the picture, and an arrow along each axis of the ground.

import { add, ballMatrix, dot, project, rodMatrix, scale, sub } from "./vectors.js";
import { onPlane } from "./view.js";

const COLORS = [
  [0.8, 0.2, 0.15],
  [0.15, 0.6, 0.2],
  [0.15, 0.35, 0.85],
];
const REACH = 0.028; // of the height of the picture: how near the pointer must be
const LONG = 0.14; // of the size of the mechanism: the length of the arrows

// on(): whether it is shown; pose(): sixteen numbers; moved(position): the reader dragged it there.
export function buildHandle(app, { on, pose, moved }) {
  const { stage, data } = app;
  const { size } = data.scene;
  const origin = () => {
    const T = pose();
    return [T[3], T[7], T[11]];
  };
  const axis = (k) => [0, 1, 2].map((i) => (i === k ? 1 : 0));

  // The part under the pointer: -1 for the ball, 0 to 2 for an arrow, null for none.
  function under({ x, y, camera }) {
    const near = (p) => {
      const at = project(camera, p);
      return at ? Math.hypot((at[0] - x) * camera.aspect, at[1] - y) : Infinity;
    };
    const here = origin();
    if (near(here) < REACH) return -1;
    const tips = [0, 1, 2].map((k) => near(add(here, scale(LONG * size, axis(k)))));
    const best = tips.indexOf(Math.min(...tips));
    return tips[best] < REACH ? best : null;
  }

  stage.view.grabbers.unshift((grab) => {
    if (!on()) return null;
    const part = under(grab);
    if (part === null) return null;
    const start = origin();
    if (part < 0) {
      const shift = sub(start, onPlane(grab, start));
      return { move: (now) => moved(add(onPlane(now, start), shift)), end() {} };
    }
    const along = axis(part);
    const first = alongAxis(grab, start, along);
    return { move: (now) => moved(add(start, scale(alongAxis(now, start, along) - first, along))), end() {} };
  });

  return {
    layer() {
      if (!on()) return null;
      const here = origin();
      const r = 0.016 * size;
      const marks = [{ solid: "ball", matrix: ballMatrix(here, r), color: stage.palette.accent.slice(0, 3) }];
      const places = [0, 1, 2].map((k) => add(here, scale(LONG * size, axis(k))));
      for (const [k, tip] of places.entries()) {
        const neck = add(here, scale(0.75 * LONG * size, axis(k)));
        marks.push({ solid: "rod", matrix: rodMatrix(here, neck, 0.004 * size), color: COLORS[k] });
        marks.push({ solid: "cone", matrix: rodMatrix(neck, tip, 0.013 * size), color: COLORS[k] });
      }
      return { marks, places };
    },
  };
}

// The distance along an axis through a point at which it is nearest to the ray of a grab.
function alongAxis({ eye, ray }, from, axis) {
  const w = sub(from, eye);
  const b = dot(axis, ray);
  const d = 1 - b * b;
  return d < 1e-6 ? 0 : (b * dot(ray, w) - dot(axis, w)) / d;
}
