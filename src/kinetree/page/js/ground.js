// The ground: forces of contacts, the weight that legs carry and what they move as they stand, and its controls. A page
// whose mechanism touches nothing leaves this module out.

import { listed } from "./contact_note.js";
import { numberControl } from "./controls.js";
import { el } from "./elements.js";
import { add, cross, originOf, scale, sub, within } from "./vectors.js";

const NEAR = 0.02; // of the size: contacts that are nearer to the ground carry

// Points and axes (normal and two tangents) of all contacts at a position, gaps, and J with three rows each.
function placesAt(kernel, q) {
  const { gap, J, points, axes } = kernel.call("contact_places", { q });
  const three = (x, at) => [x[at], x[at + 1], x[at + 2]];
  return kernel.ground.names.map((name, c) => ({
    name,
    gap: gap[c],
    rows: [0, 1, 2].map((i) => J.slice((3 * c + i) * kernel.model.nv, (3 * c + i + 1) * kernel.model.nv)),
    at: three(points, 3 * c),
    axes: [0, 1, 2].map((i) => three(axes, 9 * c + 3 * i)),
  }));
}

// Forces of all contacts at a sample of a motion: [{ name, at, force, body, other }], in the axes of the ground.
export function contactForces({ kernel, store }, motion) {
  if (!kernel.isCarried || !motion.felt?.length) return [];
  const { index } = motion.find(store.get("time"));
  const { bodies, others } = kernel.ground;
  return placesAt(kernel, store.get("q")).map(({ name, at, axes }, c) => {
    const parts = axes.map((axis, i) => scale(motion.felt[3 * c + i][index] ?? 0, axis));
    return { name, at, force: parts.reduce(add), body: bodies[c], other: others[c] };
  });
}

// Wrenches [nb, 6] of these forces on the bodies, about their origins in their frames, added to others.
export function withContacts(forces, matrices, wrenches = new Float64Array(6 * matrices.length)) {
  const out = wrenches.slice();
  for (const { at, force, body, other } of forces)
    for (const [b, sign] of [
      [body, 1],
      [other, -1],
    ])
      if (b >= 0) {
        const m = matrices[b];
        const moment = scale(sign, cross(sub(at, originOf(m)), force));
        const own = (v) => within(m, add(originOf(m), v));
        [...own(moment), ...own(scale(sign, force))].forEach((x, k) => {
          out[6 * b + k] += x;
        });
      }
  return out;
}

// How a mechanism stands at a position, on the contacts that touch now: { weight, inertias }, or null without any. The
// torques of `weight` hold it with forces at the contacts, the smallest that carry what floats. The `inertias` are what
// the joints of its legs move as their feet stay: the rest of the mechanism about each of them.
export function standing(kernel, q, now, gravity) {
  if (!kernel.isCarried) return null;
  const { model, size } = kernel;
  const touches = placesAt(kernel, now).map(({ gap }) => gap < NEAR * size);
  const near = placesAt(kernel, q).filter((_, c) => touches[c]);
  const base = model.joints.flatMap((joint, i) =>
    joint.floats && model.bodies[i].parent < 0 ? model.velocities.flatMap((v, k) => (v.joint === i ? [k] : [])) : [],
  );
  const rows = near.flatMap((contact) => contact.rows);
  if (!rows.length || !base.length) return null;
  const n = base.length;
  const G = base.flatMap((i) => base.map((j) => rows.reduce((sum, row) => sum + row[i] * row[j], 0)));
  const { x } = kernel.decompose(G, n, n, { b: base.map((k) => gravity[k]), least: 1e-9 });
  const forces = rows.map((row) => base.reduce((sum, k, i) => sum + row[k] * x[i], 0));
  const weight = Array.from(gravity, (g, k) => g - rows.reduce((sum, row, c) => sum + row[k] * forces[c], 0));
  const inertias = weight.map((_, k) =>
    !base.includes(k) && rows.some((row) => Math.abs(row[k]) > 1e-9 * size) ? restAbout(kernel, q, k, base) : 0,
  );
  return { weight, inertias };
}

// The inertia of all that is on the other side of a joint: it moves by the base, so that the body behind stays.
function restAbout(kernel, q, k, base) {
  const { model } = kernel;
  const body = model.velocities[k].joint; // joints and the bodies behind them have the same order
  const twist = (i) => {
    const qd = new Float64Array(model.nv);
    qd[i] = 1;
    return kernel.call("twists", { q, qd }).slice(6 * body, 6 * body + 6);
  };
  const columns = base.map(twist);
  const A = Array.from({ length: 6 * base.length }, (_, at) => columns[at % base.length][Math.floor(at / base.length)]);
  const { x } = kernel.decompose(A, 6, base.length, { b: twist(k).map((y) => -y), least: 1e-9 });
  const qd = new Float64Array(model.nv);
  qd[k] = 1;
  base.forEach((i, j) => {
    qd[i] = x[j];
  });
  return 2 * kernel.call("kinetic_energy", { q, qd })[0];
}

// Controls of the ground: whether it is there, and its friction. change(changes, undo) is that of the panel; drives
// that hold get other gains(changes), since legs in the air carry nothing.
export function buildGround({ store, kernel }, change, gains) {
  const settings = () => store.get("forward");
  const { names, friction } = kernel.ground;
  const box = el("input", {
    type: "checkbox",
    onchange: () => {
      const changes = { ground: box.checked };
      const held = settings().drive === "hold" ? gains(changes) : changes;
      change(held, box.checked ? "put it on the ground" : "take the ground away");
    },
  });
  const what = friction === null ? `contact of ${listed(names)}` : `ground under ${listed(names)}`;
  const row =
    friction === null
      ? null
      : numberControl({
          store,
          label: "friction",
          title: "friction of the ground, Coulomb's coefficient",
          value: settings().friction,
          lower: 0,
          upper: 10,
          slider: false,
          change: (x) => change({ friction: x }, "friction of the ground"),
        });
  const label = el("label", { class: "check", title: "hard contact with Coulomb friction" }, box, what);
  const hint = el("p", { class: "hint", role: "note" });
  const refresh = () => {
    box.checked = settings().ground && kernel.isCarried;
    box.disabled = !kernel.isCarried;
    hint.classList.toggle("missing", !kernel.isCarried);
    hint.textContent = kernel.isCarried
      ? `Only these ${friction === null ? "shapes" : "points"} touch; all else passes through the ground.`
      : "With changed numbers this page computes without contact: functions with both do not fit into it.";
    row?.set(settings().friction);
  };
  refresh();
  return { element: [label, row, hint].filter(Boolean), refresh };
}

// Lines of Python for steps with these contacts of a length dt [s], and the option of kt.simulate that they need.
export function contactLines({ kernel, model }, { drive, friction, stiffness, damping }, dt) {
  const { floor, friction: own, armatures } = kernel.ground;
  const added = kernel
    .contactNumbers(friction, dt, drive === "hold" ? { stiffness, damping } : {})
    .slice(-armatures.length);
  const driven = model.joints.flatMap((joint) => {
    const numbers = armatures.flatMap((k, i) => (model.joints[model.velocities[k].joint] === joint ? [added[i]] : []));
    return numbers.some((x) => x > 0) ? [[joint, numbers]] : [];
  });
  const tuple = (x) => `(${x.join(", ")}${x.length === 1 ? "," : ""})`;
  const total = ([joint, numbers]) =>
    `${JSON.stringify(joint.name)}: ${tuple(numbers.map((x, k) => x + (joint.armature[k] ?? joint.armature[0] ?? 0)))}`;
  return {
    lines: [
      ...(driven.length
        ? [
            "# The springs and dampers act implicitly: in a step they resist as these inertias at their joints would.",
            `added = {${driven.map(total).join(", ")}}`,
            "joints = [replace(j, armature=added.get(j.name, j.armature)) for j in arm.mechanism.joints]",
            "arm = kt.System(replace(arm.mechanism, joints=tuple(joints)))",
          ]
        : []),
      ...(own === null
        ? []
        : [
            `place = kt.Placement(${tuple(floor[0])}, (${floor[1].map(tuple).join(", ")}))`,
            'floor = kt.Surface("plane", placement=place)',
            `contacts = [kt.Contact(f.name, f.body, placement=f.placement, surface=floor, friction=${friction})`,
            '            for f in arm.mechanism.frames if f.body != "ground"]',
          ]),
    ],
    option: own === null ? "" : ", contacts=contacts",
  };
}
