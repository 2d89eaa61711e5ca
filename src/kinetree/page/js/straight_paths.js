// Paths of a frame in space: a straight line or an arc, passed by a cycloid, with the shortest rotation between the
// ends.

import { framePose, solvePose } from "./inverse_kinematics.js";
import { LAWS, spline } from "./joint_motions.js";
import { keepsRotation } from "./manipulability.js";
import { place, poseOf, rotation, turnBetween } from "./poses.js";
import { add, cross, dot, scale, sub, unit } from "./vectors.js";

const KNOTS = 61; // positions that are solved; the spline through them is within 1e-6 of a path of an arm's size
const POSITION = [0, 0, 0, 1, 1, 1];

/**
 * Samples of the joints along a path of a frame through positions of the mechanism; an Error where it cannot go on.
 * @param {import("./app.js").App} app
 * @param {import("./inverse_kinematics.js").Frame} frame
 * @param {string} kind "line", through all positions, or "arc", through three
 * @param {ArrayLike<number>[]} points
 * @param {number} duration
 */
export function alongPath(app, frame, kind, points, duration) {
  const poses = points.map((q) => framePose(app.kernel, q, frame));
  const path = kind === "line" ? lineThrough(poses) : arcThrough(poses, frame.name);
  const weights = keepsRotation(app, frame) ? undefined : POSITION;
  const [times, found] = [[], []];
  for (let k = 0; k < KNOTS; k++) {
    const u = k / (KNOTS - 1);
    const goal = path(LAWS.cycloid(u)[0]);
    const next = solvePose(app, frame, goal, { q0: found[k - 1] ?? points[0], weights });
    if (!next.converged)
      throw new Error(
        `After ${Math.round(100 * LAWS.cycloid(u)[0])} % of the ${kind}, ${frame.name} cannot go on: ` +
          `${next.position.toPrecision(3)} m are missing. Choose other ends, or a motion of the joints.`,
      );
    times.push(u * duration);
    found.push(next.q);
  }
  return spline(times, found);
}

// The pose at a part of the way along straight lines, each as long in time as it is in space.
function lineThrough(poses) {
  const pieces = poses
    .slice(1)
    .map((to, k) => ({ from: poses[k], to, way: Math.hypot(...sub(place(to), place(poses[k]))) || 1e-9 }));
  const whole = pieces.reduce((sum, { way }) => sum + way, 0);
  return (part) => {
    let left = part * whole;
    const at = pieces.findIndex(({ way }, k) => left <= way || k === pieces.length - 1 || ((left -= way), false));
    const { from, to, way } = pieces[at];
    const share = Math.min(1, left / way);
    return between(from, to, share, add(place(from), scale(share, sub(place(to), place(from)))));
  };
}

// The pose on the arc from the first position through the second to the third.
function arcThrough(poses, name) {
  if (poses.length !== 3) throw new Error("An arc needs one position on its way: add a via point, and no other.");
  const [a, b, c] = poses.map((T) => place(T));
  const [u, v] = [sub(b, a), sub(c, a)];
  const normal = cross(u, v);
  const size = dot(normal, normal);
  if (size < 1e-12 * dot(u, u) * dot(v, v) || size === 0)
    throw new Error(`The three positions of ${name} are on a straight line: move one of them, or choose line.`);
  const toCenter = scale(1 / (2 * size), add(scale(dot(v, v), cross(normal, u)), scale(-dot(u, u), cross(normal, v))));
  const center = add(a, toCenter);
  const [x, n] = [sub(a, center), unit(normal)];
  const y = cross(n, x);
  const angle = (p) => (Math.atan2(dot(p, y), dot(p, x)) + 2 * Math.PI) % (2 * Math.PI);
  const end = angle(sub(c, center));
  return (part) => {
    const phi = part * end;
    return between(poses[0], poses[2], part, add(center, add(scale(Math.cos(phi), x), scale(Math.sin(phi), y))));
  };
}

// A pose at a position, rotated from one pose toward another by a share of the shortest rotation.
function between(from, to, share, position) {
  const turn = turnBetween(from, to);
  const angle = Math.hypot(...turn);
  if (angle < 1e-12) return poseOf(position, rotation(from));
  const k = scale(1 / angle, turn);
  const [c, s] = [Math.cos(share * angle), Math.sin(share * angle)];
  const R = rotation(from);
  const columns = [0, 1, 2].map((j) => {
    const e = [0, 1, 2].map((i) => Number(i === j)); // rotated about k, in the axes of the first pose
    const r = add(add(scale(c, e), scale(s, cross(k, e))), scale((1 - c) * dot(k, e), k));
    return [0, 1, 2].map((i) => dot([R[3 * i], R[3 * i + 1], R[3 * i + 2]], r));
  });
  return poseOf(
    position,
    [0, 1, 2].flatMap((i) => columns.map((column) => column[i])),
  );
}
