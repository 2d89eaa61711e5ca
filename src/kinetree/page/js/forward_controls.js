// Controls of forward dynamics: the initial state, and the drives.

import { numberControl } from "./controls.js";
import { choice, el } from "./elements.js";
import { standing } from "./ground.js";
import { planOf, plannedAt, reasonOf } from "./motion_plan.js";
import { shortLabels } from "./names.js";

const button = (text, title, action) => el("button", { type: "button", text, title, onclick: action });

// One target per velocity: the coordinate of the same direction, or 0.
function targetsOf(kernel, q) {
  return kernel.coordinates.map((k) => (k < 0 ? 0 : q[k]));
}

export function drivesOf(app, settings) {
  const { drive, stiffness, damping, torque } = settings;
  if (drive === "track") return tracking(app, stiffness, damping);
  if (drive === "torque") return { torque: Float64Array.from(torque) };
  if (drive !== "hold") return {};
  return {
    stiffness: Float64Array.from(stiffness),
    damping: Float64Array.from(damping),
    target: Float64Array.from(springTargets(settings)),
  };
}

// Where the planned motion begins, { q, qd }; null without one.
export function plannedStart(app) {
  const { motion } = planOf(app).made();
  if (!motion) return null;
  const { q, qd } = motion.state(motion.start);
  return { q: Array.from(q), qd: Array.from(qd) };
}

const untracked = ({ fault }) => `There is no motion to track. ${fault}`;

// Drives that track the planned motion: the torques of inverse dynamics along it, and springs and dampers about it;
// after its end they hold. None without such a motion, and a message.
function tracking(app, stiffness, damping) {
  const made = planOf(app).made();
  if (made.fault) {
    app.say(untracked(made));
    return {};
  }
  const rest = new Float64Array(app.model.nv);
  const end = { ...made.motion.state(made.motion.end), qd: rest, qdd: rest };
  const at = (t) => {
    const now = t < made.motion.end ? plannedAt(made, t) : end;
    const tau = app.kernel.call("inverse_dynamics", now);
    return { target: now.q, torque: Float64Array.from(tau, (x, k) => x + damping[k] * now.qd[k]) };
  };
  return { stiffness: Float64Array.from(stiffness), damping: Float64Array.from(damping), at };
}

// Where the springs of a hold are at rest: so far beyond its targets that they carry the weight there, k (s - q) = g.
export const springTargets = ({ target, stiffness, weight }) =>
  target.map((x, k) => (weight && stiffness[k] > 0 ? x + weight[k] / stiffness[k] : x));

// Gains that hold each joint at a position: its inertia there swings at a frequency [rad/s] with a damping ratio, and
// its spring carries the weight. Where the contacts of the position `now` carry the mechanism, the legs carry its
// weight, and a joint holds what is before it, if that is more than what is behind it.
export function heldAt(kernel, q, frequency, ratio, now = q) {
  const still = kernel.has("gravity_torque")
    ? kernel.call("gravity_torque", { q }).slice()
    : new Float64Array(q.length);
  const stands = now && standing?.(kernel, q, now, still); // a page without a ground leaves it out
  const inertias = kernel.inertias(q).map((x, k) => Math.max(x, stands ? stands.inertias[k] : 0));
  const driven = (x, k) => (kernel.coordinates[k] < 0 ? 0 : x);
  return {
    stiffness: Array.from(inertias, (x, k) => driven(frequency ** 2 * x, k)),
    damping: Array.from(inertias, (x, k) => driven(2 * ratio * frequency * x, k)),
    target: targetsOf(kernel, q),
    weight: Array.from(stands ? stands.weight : still, driven),
  };
}

// Rows of the initial state; setStart(changes, undo) is called with { q } or { qd }.
export function buildStart(app, setStart) {
  const { model, store, kernel, data } = app;
  const half = (unit) => (unit === "rad" ? Math.PI : data.scene.size);
  const names = shortLabels(model.coordinates.map((c) => c.label));
  const positions = model.coordinates.map((c, k) =>
    c.unit === "1"
      ? null
      : numberControl({
          store,
          label: names[k],
          title: c.label,
          unit: c.unit,
          value: store.get("start").q[k],
          lower: c.lower,
          upper: c.upper,
          slider: [c.lower ?? -half(c.unit), c.upper ?? half(c.unit)],
          change: (x) => {
            const q = Float64Array.from(store.get("start").q);
            q[k] = x;
            const made = kernel.close(q, { held: c.velocity < 0 ? [] : [c.velocity] });
            if (!made.closed) return app.say("The loops do not close here: this position cannot be reached.");
            setStart({ q: Array.from(made.q) }, `start at ${c.label}`);
          },
        }),
  );
  const short = shortLabels(model.velocities.map((v) => v.label));
  const velocities = model.velocities.map((v, k) =>
    numberControl({
      store,
      label: short[k],
      title: v.label,
      unit: v.unit,
      value: store.get("start").qd[k],
      slider: v.unit === "rad/s" ? [-10, 10] : [-2, 2],
      change: (x) => {
        const { q, qd } = store.get("start");
        const next = Float64Array.from(qd);
        next[k] = x;
        setStart(
          { qd: Array.from(kernel.closeVelocities(Float64Array.from(q), next, { held: [k] })) },
          `start with ${v.label}`,
        );
      },
    }),
  );
  const rows = el("div", {}, positions.filter(Boolean));
  const tabs = choice(["position", "velocity"], {
    label: "initial state",
    value: "position",
    change: (which) => rows.replaceChildren(...(which === "position" ? positions.filter(Boolean) : velocities)),
  });
  const refresh = () => {
    const { q, qd } = store.get("start");
    positions.forEach((row, k) => row && row.set(q[k]));
    velocities.forEach((row, k) => row.set(qd[k]));
  };
  return { element: [tabs, rows], refresh };
}

// Rows of the drives; change(changes, undo, start) is called with changes of the store's field `forward`, and perhaps a
// state to begin at. gains(changes) has the springs and dampers that belong to them.
export function buildDrives(app, change) {
  const { model, store, kernel, data } = app;
  const settings = () => store.get("forward");
  if (settings().drive === "track") planOf(app); // of a link: its field is read before others wait for its changes
  const names = shortLabels(model.velocities.map((v) => v.label));
  const most = (v) => model.joints[v.joint].effort[0] ?? null;
  const torques = model.velocities.map((v, k) =>
    numberControl({
      store,
      label: names[k],
      title: v.label,
      unit: v.effort,
      value: settings().torque[k],
      slider: [-(most(v) ?? 50), most(v) ?? 50],
      change: (x) => change({ torque: settings().torque.map((old, j) => (j === k ? x : old)) }, `torque of ${v.label}`),
    }),
  );
  const half = (unit) => (unit === "rad" ? Math.PI : data.scene.size);
  const targets = kernel.coordinates.map((c, k) =>
    c < 0
      ? null
      : numberControl({
          store,
          label: names[k],
          title: model.velocities[k].label,
          unit: model.coordinates[c].unit,
          value: settings().target[k],
          slider: [
            model.coordinates[c].lower ?? -half(model.coordinates[c].unit),
            model.coordinates[c].upper ?? half(model.coordinates[c].unit),
          ],
          change: (x) =>
            change(
              gains({ target: settings().target.map((old, j) => (j === k ? x : old)) }),
              `target of ${model.velocities[k].label}`,
            ),
        }),
  );
  // New gains for the present targets.
  const gains = (changes) => {
    const { frequency, ratio, target, ground } = { ...settings(), ...changes };
    const q = Float64Array.from(store.get("q"));
    target.forEach((x, k) => {
      if (kernel.coordinates[k] >= 0) q[kernel.coordinates[k]] = x;
    });
    return { ...changes, ...heldAt(kernel, q, frequency, ratio, ground ? store.get("q") : null), target };
  };
  const here = () => {
    const { frequency, ratio, ground } = settings();
    return heldAt(kernel, store.get("q"), frequency, ratio, ground ? store.get("q") : null);
  };
  const masters = [
    numberControl({
      store,
      label: "frequency",
      title: "of each joint on its spring",
      unit: "1/s",
      value: settings().frequency,
      lower: 0,
      upper: 200,
      slider: false,
      change: (x) => change(gains({ frequency: x }), "frequency"),
    }),
    numberControl({
      store,
      label: "damping ratio",
      title: "1 returns fastest without overshoot",
      value: settings().ratio,
      lower: 0,
      upper: 10,
      slider: false,
      change: (x) => change(gains({ ratio: x }), "damping ratio"),
    }),
  ];
  const hold = button("Hold here", "targets at the present position", () => change(here(), "hold here"));
  const carried = el("p", {
    class: "hint",
    text:
      "Springs and dampers, of which the springs also carry the weight that the joints have at their targets" +
      (kernel.isCarried ? ", through the legs where they stand on the ground." : "."),
  });
  const tracked = el("p", {
    class: "hint",
    text:
      "The torques of inverse dynamics along the motion of the mode Motion, with springs and dampers about it. " +
      "Another start, or a pull, shows how they bring the mechanism back.",
  });
  function track() {
    const start = plannedStart(app);
    app.player.play(false);
    const { frequency, ratio } = settings();
    const gained = heldAt(kernel, start?.q ?? store.get("q"), frequency, ratio, null);
    change({ drive: "track", ...gained }, "drives", start);
    if (!start) app.say(untracked(app.plan.made()));
  }
  const rows = el("div", {});
  const tabs = choice(["none", "torque", "hold", ...(reasonOf(app, "") ? [] : ["track"])], {
    label: "drives",
    value: settings().drive,
    titles: {
      none: "no drives: free fall",
      torque: "constant torques and forces",
      hold: "a spring and a damper in every joint, toward a target",
      track: "the motion of the mode Motion, from its start",
    },
    change: (drive) =>
      drive === "track"
        ? track()
        : change({ drive, ...(drive === "hold" && settings().drive !== "hold" ? here() : {}) }, "drives"),
  });
  let shown = null;
  const refresh = () => {
    const { drive, torque, target, frequency, ratio } = settings();
    tabs.set(drive);
    torques.forEach((row, k) => row.set(torque[k]));
    targets.forEach((row, k) => row && row.set(target[k]));
    masters.forEach((row, k) => row.set([frequency, ratio][k]));
    if (shown === drive) return;
    shown = drive;
    rows.replaceChildren(
      ...(drive === "torque"
        ? torques
        : drive === "hold"
          ? [...masters, el("div", { class: "buttons" }, hold), ...targets.filter(Boolean), carried]
          : drive === "track"
            ? [...masters, tracked]
            : []),
    );
  };
  refresh();
  return { element: [tabs, rows], refresh, gains };
}
