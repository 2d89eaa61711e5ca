// The pull of the pointer on a body: a spring and a damper toward the pointer, in the plane that faces the reader.

import { onPlane } from "./view.js";
import { ballMatrix, within } from "./vectors.js";

const SWINGS = 9; // [rad/s] the frequency of the whole mass on the spring of the pointer
const DAMPED = 0.35; // its damping ratio

// buildPull(app, moving) returns { grab(grab), active(), layer() }; `moving()` is the motion that a pull changes, or
// null.
export function buildPull(app, moving) {
  const { model, store, player } = app;
  let pulled = null;

  function begin(motion, hit, T) {
    const mass = model.bodies.reduce((sum, b) => sum + b.mass, 0);
    pulled = {
      body: hit.body,
      point: within(T, hit.point),
      goal: hit.point,
      at: hit.point,
      stiffness: mass * SWINGS ** 2,
      damping: 2 * DAMPED * mass * SWINGS,
    };
    if (store.get("time") < motion.end - 1e-9) motion.resume(store.get("time"));
    motion.pull = pulled;
    motion.touched = true;
    player.play(true);
  }

  return {
    active: () => Boolean(pulled),
    grab(grab) {
      const hit = grab.hit();
      const motion = moving();
      if (!hit || hit.body < 0 || !motion) return null;
      const T = app.matricesNow()[hit.body];
      return {
        move(now) {
          if (!pulled) begin(motion, hit, T);
          pulled.goal = onPlane(now, hit.point);
          app.stage.refresh();
        },
        end() {
          pulled = null;
          motion.pull = null;
        },
      };
    },
    // The spring, and its force as an arrow of a length per newton.
    layer(length) {
      if (!pulled) return { lines: [], marks: [], arrows: [] };
      const { accent } = app.stage.palette;
      return {
        lines: [{ points: new Float32Array([...pulled.at, ...pulled.goal]), color: accent, width: 2 }],
        marks: [
          { solid: "ball", matrix: ballMatrix(pulled.goal, 0.012 * app.data.scene.size), color: accent.slice(0, 3) },
        ],
        arrows: pulled.force
          ? [{ name: "pull", group: "pull", unit: "N", origin: pulled.at, vector: pulled.force, length }]
          : [],
      };
    },
  };
}
