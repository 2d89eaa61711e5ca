// The planar four-bar in words: which of its links turn, by the rule of Grashof.

import { short } from "./units.js";

const EQUAL = 1e-9;

// { links: [{ name, length }] in order around the loop, ground first } of a planar four-bar; null for other mechanisms.
export function fourBar(app, q) {
  const { model, kernel, data } = app;
  const pins = (kind) => kind === "revolute";
  if (
    !data.scene.planar ||
    model.loops.length !== 1 ||
    model.bodies.length !== 3 ||
    !model.joints.every((j) => pins(j.kind)) ||
    !["revolute", "point_on_line"].includes(model.loops[0].kind)
  )
    return null;
  const [loop] = model.loops;
  const chain = (body) => (body < 0 ? [] : [...chain(model.bodies[body].parent), body]);
  const [up, down] = [chain(loop.a), chain(loop.b)];
  if (up.some((i) => down.includes(i)) || up.length + down.length !== 3) return null;
  const poses = kernel.poses(q).slice();
  const at = (body, p) =>
    [0, 1, 2].map(
      (i) =>
        poses[16 * body + 4 * i] * p[0] +
        poses[16 * body + 4 * i + 1] * p[1] +
        poses[16 * body + 4 * i + 2] * p[2] +
        poses[16 * body + 4 * i + 3],
    );
  const origin = (body) => at(body, [0, 0, 0]);
  const normal = model.joints[0].axes.map((row) => row[2]);
  const along = [0, 1, 2].map(
    (i) => poses[4 * i] * normal[0] + poses[4 * i + 1] * normal[1] + poses[4 * i + 2] * normal[2],
  );
  const apart = (p, r) => {
    // in the plane
    const d = p.map((x, k) => x - r[k]);
    const out = d[0] * along[0] + d[1] * along[1] + d[2] * along[2];
    return Math.hypot(...d.map((x, k) => x - out * along[k]));
  };
  const end = (body, pose) => (body < 0 ? [pose[3], pose[7], pose[11]] : at(body, [pose[3], pose[7], pose[11]]));
  // Pins around the loop: up the one chain, the cut, down the other one. Link k joins pins k and k + 1. The two sides
  // of the cut may be apart while the loop is open, so that each link is measured on its own body.
  const [a, b] = [end(loop.a, loop.pose_a), end(loop.b, loop.pose_b)];
  const names = [...up, ...down.slice().reverse()].map((i) => model.bodies[i].name);
  const lengths = [
    ...up.map((i, k) => apart(origin(i), k + 1 < up.length ? origin(up[k + 1]) : a)),
    ...down
      .slice()
      .reverse()
      .map((i, k) => apart(k ? origin(down[down.length - k]) : b, origin(i))),
  ];
  const feet = [up.length ? origin(up[0]) : a, down.length ? origin(down[0]) : b];
  return {
    links: [{ name: "ground", length: apart(...feet) }, ...names.map((name, k) => ({ name, length: lengths[k] }))],
  };
}

// { kind, text } by Grashof's rule: the shortest and the longest link together against the two others.
export function grashof({ links }) {
  const order = links.map((_, k) => k).sort((i, j) => links[i].length - links[j].length);
  const [s, p, q, l] = order.map((k) => links[k].length);
  const shortest = links[order[0]].name;
  const sums = `shortest and longest link together ${short(s + l)} m, the two others ${short(p + q)} m`;
  if (l > s + p + q)
    return {
      kind: "open",
      text: `${links[order[3]].name} is longer than the other links together: this four-bar cannot close.`,
    };
  if (Math.abs(s + l - p - q) <= EQUAL * l)
    return {
      kind: "change point",
      text:
        `Change point (${sums}): all links can lie in one line, where the mechanism may go on in either of ` +
        `two ways.`,
    };
  if (s + l > p + q) return { kind: "triple rocker", text: `No link turns fully (${sums}): all rock.` };
  if (order[0] === 0)
    return { kind: "drag link", text: `The ground is the shortest link (${sums}): both links on it turn fully.` };
  if (order[0] === 2)
    return {
      kind: "double rocker",
      text:
        `The coupler ${shortest} is the shortest link (${sums}): it turns fully, and both links on the ` +
        `ground rock.`,
    };
  return {
    kind: "crank rocker",
    text:
      `${shortest} is the shortest link (${sums}): it turns fully, and ` +
      `${links[order[0] === 1 ? 3 : 1].name} rocks.`,
  };
}
