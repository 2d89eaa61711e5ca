// What a picture shows: toggles, arrows and trails of the motion in the store.

import { el, toggle } from "./elements.js";
import { Trails } from "./trails.js";

/**
 * Toggles: [name, text, key, tooltip, on at first].
 * @type {[string, string, string, string, boolean][]}
 */
export const SHOWN = [
  ["trails", "trails", "t", "paths of the ends", true],
  ["names", "names", "n", "names of bodies and frames", false],
  ["axes", "frames", "x", "axes of all frames: x red, y green, z blue", false],
  ["joints", "joints", "a", "axes of the joints", false],
  ["masses", "masses", "m", "centers of mass", false],
  ["ellipsoids", "ellipsoids", "e", "ellipsoids of inertia", false],
  ["points", "points", "p", "seven equimomental points of each body", false],
  ["floor", "floor", "g", "floor and shadow", true],
  ["follow", "follow", "o", "the view moves with the bodies", false],
];
export const ARROWS = [
  ["reactions", "reactions"],
  ["drives", "drives"],
  ["wrenches", "other forces"],
  ["contacts", "ground"],
  ["values", "values"],
];

// The toggles that are on at first.
export function firstShown({ arrows = [], scene, model, run }) {
  const roots = model.joints.filter((_, i) => model.bodies[i].parent < 0);
  const floats = !run && roots.length > 0 && roots.every((joint) => joint.floats);
  const given = new Set(arrows.map((arrow) => arrow.group)).add("values");
  return Object.fromEntries([
    ...SHOWN.map(([name, , , , on]) => [name, on]),
    ...ARROWS.map(([name]) => [name, given.has(name)]),
    ["contacts", true],
    ["follow", scene.follows || floats], // what floats falls without end
  ]);
}

// live: groups of arrows that the page computes by itself.
export function buildToggles({ data, store }, { names = SHOWN.map(([name]) => name), live = [] } = {}) {
  const groups = new Set([...(data.arrows || []).map((arrow) => arrow.group), ...live]);
  const all = [
    ...SHOWN.filter(([name]) => names.includes(name)).map(([name, text, key, title]) => [
      name,
      text,
      `${title} (${key})`,
    ]),
    ...ARROWS.filter(([name]) => groups.has(name) || (name === "values" && groups.size)).map(([name, text]) => [
      name,
      text,
      `arrows: ${text}`,
    ]),
  ];
  const box = el("div", { class: "toggles", role: "group", "aria-label": "what the picture shows" });
  const buttons = all.map(([name, text, title]) => ({
    name,
    button: toggle(text, { title, change: (on) => store.set({ show: { ...store.get("show"), [name]: on } }) }),
  }));
  const refresh = () => buttons.forEach(({ name, button }) => button.set(store.get("show")[name]));
  for (const { name, button } of buttons) if (groups.has(name)) button.classList.add(name);
  store.on(["show"], refresh);
  refresh();
  box.append(...buttons.map(({ button }) => button));
  return [box];
}

// The scene that a stage composes (stage.js). matricesNow(): poses now; matricesAt(motion, index): poses of a sample.
export function sceneOf({ data, store }, matricesNow, matricesAt, more = (_time) => ({})) {
  const trails = new Trails(data.scene.tips, matricesAt);
  return () => {
    const [motion, time, show] = ["motion", "time", "show"].map((name) => store.get(name));
    return {
      matrices: matricesNow(),
      show,
      hidden: store.get("hidden"),
      picked: store.get("picked"),
      isPlaying: store.get("playing"),
      trails: show.trails ? trails.of(motion, time) : [],
      arrows: arrowsAt(data, motion, time),
      ...more(time),
    };
  };
}

// Arrows of a recorded run at a time, between the frames on straight lines.
function arrowsAt({ arrows = [] }, motion, time) {
  if (!motion?.recorded) return [];
  const { index, share } = motion.find(time);
  const next = Math.min(index + 1, motion.count - 1);
  return arrows.map(({ rows, ...arrow }) => {
    const row = [0, 1, 2, 3, 4, 5].map((k) => (1 - share) * rows[6 * index + k] + share * rows[6 * next + k]);
    return { ...arrow, origin: row.slice(0, 3), vector: row.slice(3) };
  });
}
