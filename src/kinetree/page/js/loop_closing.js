// Close loops after a length has changed: near the present position, or elsewhere.

import { seeded } from "./random_numbers.js";

const TRIES = 24;

// { q, gap, closed }: with the leading joints where they are; else with all joints free; else from random starts; else
// the position of the least gap that was found.
export function recloseWith(app, q, leads) {
  const { kernel, model, data } = app;
  const random = seeded(3);
  let best = kernel.close(q, { held: leads });
  if (best.closed) return best;
  for (let k = 0; k <= TRIES; k++) {
    const away = Float64Array.from(model.velocities, (v) =>
      k ? (2 * random() - 1) * (v.unit === "rad/s" ? Math.PI : 0.7 * data.scene.size) : 0,
    );
    const made = kernel.close(kernel.integrate(q, away));
    if (made.closed) return made;
    if (made.gap < best.gap) best = made;
  }
  return best;
}
