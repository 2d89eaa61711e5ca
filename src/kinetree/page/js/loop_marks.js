// Marks of loops on the stage: where they are cut, gaps, joints of findings, freedoms as small motions, and curves of
// points.

import { freedoms } from "./loop_rates.js";
import { bodyItems } from "./stage_items.js";
import { add, originOf, rodMatrix, scale, sub, transform, turned } from "./vectors.js";

const PERIOD = 1600; // [ms] of a motion to and fro
const SWING = 0.22; // [rad, sizes of the mechanism] its largest joint displacement
const COLORS = { wrong: [0.78, 0.16, 0.14, 1], caution: [0.8, 0.48, 0.05, 1], note: [0.12, 0.42, 0.72, 1] };

// The two ends of a loop, as points of the ground.
export function endsOf(model, loop, matrices) {
  const { a, b, pose_a: A, pose_b: B } = model.loops[loop];
  const at = (body, pose) =>
    body < 0 ? [pose[3], pose[7], pose[11]] : transform(matrices[body], [pose[3], pose[7], pose[11]]);
  return [at(a, A), at(b, B)];
}

// Two slanting strokes at every cut, as on a cut line of a drawing, its name, and the gap where it is open.
export function cutMarks({ model, stage, data }, matrices, marked = new Map()) {
  const { right, above } = stage.view.shown || stage.view.matrices(1);
  const r = 0.035 * data.scene.size;
  const out = { lines: [], labels: [], marks: [] };
  model.loops.forEach(({ name }, k) => {
    const [a, b] = endsOf(model, k, matrices);
    const color = COLORS[marked.get(k) || "note"].slice(0, 3);
    for (const shift of [-0.25 * r, 0.25 * r]) {
      const [from, to] = [-1, 1].map((s) => add(a, add(scale(shift + 0.4 * s * r, right), scale(s * r, above))));
      out.marks.push({ solid: "rod", matrix: rodMatrix(from, to, 0.09 * r), color });
    }
    if (Math.hypot(...sub(b, a)) > 1e-6 * data.scene.size && !model.loops[k].bar)
      out.lines.push({ points: new Float32Array([...a, ...b]), color: COLORS.wrong, width: 3 });
    out.labels.push({ text: `cut: ${name}`, at: a, strong: true });
  });
  return out;
}

// The axes of joints that a finding names.
export function jointMarks({ model, data }, matrices, velocities, level) {
  const long = 0.14 * data.scene.size;
  return velocities.map((k) => {
    const { joint } = model.velocities[k];
    const { axes } = model.joints[joint];
    const [from, along] = [
      originOf(matrices[joint]),
      turned(
        matrices[joint],
        axes.map((row) => row[2]),
      ),
    ];
    return {
      points: new Float32Array([...add(from, scale(-long, along)), ...add(from, scale(long, along))]),
      color: COLORS[level],
      width: 4,
    };
  });
}

// The mechanism displaced along one of its freedoms, which moves to and fro: call `items(now)` at every picture.
export class Freedom {
  constructor(app, q, leads, number) {
    const { columns } = app.kernel.units;
    const { motions } = freedoms(app, q);
    const lead = leads[number];
    const others = leads.filter((k) => k !== lead);
    // The motion in which the other leads stand still.
    let own = motions.map((v) => Float64Array.from(v));
    for (const k of others) {
      const pivot = own.reduce((best, v) => (Math.abs(v[k]) > Math.abs(best[k]) ? v : best));
      own = own
        .filter((v) => v !== pivot)
        .map((v) => v.map((x, i) => x - (pivot[k] ? (v[k] / pivot[k]) * pivot[i] : 0)));
    }
    const way = own[0] || new Float64Array(app.model.nv);
    const most = Math.max(...way.map(Math.abs)) || 1;
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const phases = still ? [-1, 1] : Array.from({ length: 17 }, (_, k) => (k - 8) / 8);
    // Positions along the motion, outward from here, each from the one before: the loops stay closed.
    const side = (sign) => {
      const out = [];
      let at = Float64Array.from(q);
      for (const part of phases.filter((x) => sign * x > 0).sort((a, b) => sign * (a - b))) {
        const before = out.length ? out[out.length - 1].part : 0;
        const made = app.kernel.close(
          app.kernel.integrate(
            at,
            way.map((x, i) => (((part - before) * SWING) / most) * x * columns[i]),
          ),
          { held: others },
        );
        if (!made.closed) break;
        at = made.q;
        out.push({ part, q: at });
      }
      return out;
    };
    this.stops = [...side(-1).reverse(), ...(still ? [] : [{ part: 0, q }]), ...side(1)].map((stop) =>
      app.matrices(stop.q),
    );
    this.app = app;
    this.number = number;
    this.still = still;
  }

  items(now) {
    const { stops, app, still } = this;
    const hidden = app.store.get("hidden");
    if (still) return stops.flatMap((matrices) => bodyItems(app.stage, { matrices, hidden }, 0.25));
    const place = ((Math.sin((2 * Math.PI * now) / PERIOD) + 1) / 2) * (stops.length - 1);
    return bodyItems(app.stage, { matrices: stops[Math.round(place)], hidden }, 0.4);
  }
}
