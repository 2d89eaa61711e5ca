// What the stage draws of joints and masses: axes, centers of mass, ellipsoids of inertia, equimomental points.

import { add, ballMatrix, columns, originOf, scale, sub, transform, turned } from "./vectors.js";

// The axes of joints as chain lines, as in drawings.
export function jointLines(stage, matrices) {
  const points = [];
  const length = 0.2 * stage.scene.size;
  stage.model.joints.forEach(({ axes, solid }, i) => {
    if (solid === null || solid === "ball") return;
    const [from, along] = [
      originOf(matrices[i]),
      turned(
        matrices[i],
        axes.map((row) => row[2]),
      ),
    ];
    for (const [a, b] of [
      [-1, -0.2],
      [-0.1, 0.1],
      [0.2, 1],
    ]) {
      points.push(...add(from, scale(a * length, along)), ...add(from, scale(b * length, along)));
    }
  });
  return [{ points: new Float32Array(points), color: stage.palette.accent, width: 1.5 }];
}

// Balls at the centers of mass, of volumes in the ratio of the masses.
export function massItems(stage, { matrices, hidden }) {
  const most = Math.max(...stage.model.bodies.map((b) => b.mass), 1e-300);
  return stage.model.bodies.flatMap(({ mass, com }, i) => {
    if (!(mass > 0) || hidden?.has(i)) return [];
    const r = 0.028 * stage.scene.size * Math.cbrt(mass / most);
    const at = transform(matrices[i], com);
    return [{ ...stage.solid("ball"), matrix: ballMatrix(at, r), color: [0.13, 0.13, 0.16] }];
  });
}

// Homogeneous ellipsoids with mass and inertia of the bodies: squares of the semiaxes are 5/2 (sum - 2 own) / mass.
export function ellipsoids(stage, { matrices, hidden }) {
  return stage.model.bodies.flatMap(({ mass, com, moments, axes, color }, i) => {
    if (!(mass > 0) || hidden?.has(i)) return [];
    const sum = moments[0] + moments[1] + moments[2];
    const r = moments.map((x) =>
      Math.max(Math.sqrt(Math.max(0, (2.5 * (sum - 2 * x)) / mass)), 0.004 * stage.scene.size),
    );
    const [x, y, z] = [0, 1, 2].map((k) =>
      scale(
        r[k],
        turned(
          matrices[i],
          axes.map((row) => row[k]),
        ),
      ),
    );
    return [
      { ...stage.solid("ball"), matrix: columns(x, y, z, transform(matrices[i], com)), color: rgb(color), alpha: 0.35 },
    ];
  });
}

// Seven equal points, six on the principal axes and one at the center, with mass and inertia of the body: equimomental.
export function pointMasses(stage, { matrices, hidden }) {
  return stage.model.bodies.flatMap(({ mass, com, moments, axes, color }, i) => {
    if (!(mass > 0) || hidden?.has(i)) return [];
    const sum = moments[0] + moments[1] + moments[2];
    const center = transform(matrices[i], com);
    const r = 0.011 * stage.scene.size;
    const ball = (at) => ({ ...stage.solid("ball"), matrix: ballMatrix(at, r), color: rgb(color) });
    const ends = [0, 1, 2].flatMap((k) => {
      const arm = scale(
        Math.sqrt(Math.max(0, (3.5 * (sum - 2 * moments[k])) / (2 * mass))),
        turned(
          matrices[i],
          axes.map((row) => row[k]),
        ),
      );
      return [ball(add(center, arm)), ball(sub(center, arm))];
    });
    return [ball(center), ...ends];
  });
}

export const rgb = (color) => [1, 3, 5].map((k) => parseInt(color.slice(k, k + 2), 16) / 255);
