// The scene with which the studio greets: the arm swings about a position on soft springs, and can be grabbed.

import { heldAt } from "./forward_controls.js";

const WELCOME = "#welcome"; // the end of the address that asks for it
const [FREQUENCY, RATIO] = [6, 0.02]; // of the springs: [1/s], and the part of critical damping
const BEND = [0.6, -0.7, 0.5, 0.4, 0.6, 0]; // [rad] where the springs are at rest, joint by joint
const PUSH = 0.35; // [rad] from there to the start
const ENOUGH = 0.12; // [m] of a slide

// Whether the page shows it: at the first opening, and not where the reader works already.
export function showFirstScene(app) {
  const { store, kernel, model, player } = app;
  if (location.hash !== WELCOME || !app.panels.some((panel) => panel.name === "Simulate") || model.closed) return;
  store.set({ mode: "Simulate" });
  const at = (amounts) =>
    Float64Array.from(store.get("q"), (x, k) => {
      const c = model.coordinates[k];
      if (c.unit === "1" || model.joints[c.joint].floats) return x;
      const next = x + (c.unit === "rad" ? amounts(k) : ENOUGH);
      return Math.min(c.upper ?? Infinity, Math.max(c.lower ?? -Infinity, next));
    });
  const rest = at((k) => BEND[k % BEND.length]);
  const start = at((k) => BEND[k % BEND.length] + (k % 2 ? -PUSH : PUSH));
  const springs = heldAt(kernel, rest, FREQUENCY, RATIO);
  store.set({ forward: { ...store.get("forward"), drive: "hold", frequency: FREQUENCY, ratio: RATIO, ...springs } });
  store.set({ start: { q: Array.from(start), qd: new Array(model.nv).fill(0) } }, { by: "welcome" });
  app.say("Drag a link of the arm. Space pauses.", { calm: true });
  if (!matchMedia("(prefers-reduced-motion: reduce)").matches) player.play(true);
}
