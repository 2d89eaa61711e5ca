// The body under a ray: the nearest triangle of all solids that are drawn.

import { add, cross, dot, scale, sub, transform } from "./vectors.js";

// Items as the stage draws them, with `body`; returns { body, point, distance } or null.
export function pickItem(items, solids, eye, ray) {
  let best = null;
  for (const item of items) {
    if (item.body === undefined || (item.alpha ?? 1) < 1) continue;
    for (let k = item.first; k < item.first + item.count; k += 3) {
      const [a, b, c] = [0, 1, 2].map((j) => {
        const v = 9 * solids.faces[k + j];
        return transform(item.matrix, solids.vertices.subarray(v, v + 3));
      });
      const distance = alongRay(eye, ray, a, b, c);
      if (distance !== null && (best === null || distance < best.distance)) best = { body: item.body, distance };
    }
  }
  return best && { ...best, point: add(eye, scale(best.distance, ray)) };
}

function alongRay(eye, ray, a, b, c) {
  const [u, v] = [sub(b, a), sub(c, a)];
  const p = cross(ray, v);
  const det = dot(u, p);
  if (Math.abs(det) < 1e-14) return null;
  const from = sub(eye, a);
  const x = dot(from, p) / det;
  if (x < -1e-6 || x > 1 + 1e-6) return null;
  const q = cross(from, u);
  const y = dot(ray, q) / det;
  if (y < -1e-6 || x + y > 1 + 1e-6) return null;
  const t = dot(v, q) / det;
  return t > 0 ? t : null;
}
