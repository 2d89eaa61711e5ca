// Arrows of forces and torques on the stage, and the texts beside arrows, bodies and frames.

import { frameMatrices } from "./stage_items.js";
import { add, originOf, rodMatrix, scale, sub, unit } from "./vectors.js";

const ARROW_COLORS = {
  reactions: [0.78, 0.19, 0.16],
  drives: [0.48, 0.25, 0.64],
  wrenches: [0.18, 0.49, 0.2],
  contacts: [0.72, 0.45, 0.05],
  pull: [0.12, 0.42, 0.72],
};
const LABELED = 0.01; // of the size of the mechanism: shorter arrows have no label

// All arrows that are shown, with their tips, the largest first. Those of one group and unit share a scale, by which
// the longest is at most `longest`.
export function shownArrows({ arrows = [], layers = [], show, longest = Infinity }) {
  const shown = [...arrows, ...layers.flatMap((layer) => layer.arrows || [])]
    .filter((arrow) => show[arrow.group] !== false)
    .map((arrow) => ({ ...arrow, size: Math.hypot(...arrow.vector), kind: `${arrow.group} ${arrow.unit}` }));
  const most = new Map(); // lengths by kind
  for (const { kind, size, length } of shown) most.set(kind, Math.max(most.get(kind) ?? 0, size * length));
  return shown
    .map((arrow) => {
      const length = arrow.length * Math.min(1, longest / (most.get(arrow.kind) || 1));
      return { ...arrow, long: arrow.size * length, tip: add(arrow.origin, scale(length, arrow.vector)) };
    })
    .sort((one, other) => other.long - one.long);
}

// A shaft and a head; torques have two heads. Arrows shorter than the shaft is thick are left out.
export function arrowItems(stage, { group, unit: unitOf, long, origin, tip, color = ARROW_COLORS[group] }) {
  const thick = 0.006 * stage.scene.size;
  if (long < 2 * thick) return [];
  const along = unit(sub(tip, origin));
  const top = Math.min(8 * thick, 0.4 * long);
  const heads = unitOf === "N" ? [tip] : [tip, sub(tip, scale(0.8 * top, along))];
  const neck = sub(heads[heads.length - 1], scale(0.9 * top, along));
  return [
    { ...stage.solid("rod"), matrix: rodMatrix(origin, neck, thick), color },
    ...heads.map((end) => {
      const matrix = rodMatrix(sub(end, scale(top, along)), end, Math.min(2.6 * thick, 0.4 * top));
      return { ...stage.solid("cone"), matrix, color };
    }),
  ];
}

// Texts of the layers, of arrows, bodies and frames, the most important first.
export function stageLabels({ model, scene: { size: whole } }, scene) {
  const { show, matrices, hidden, layers = [] } = scene;
  const out = layers.flatMap((layer) => layer.labels || []);
  const dark = document.documentElement.dataset.theme === "dark";
  if (show.values !== false) {
    for (const { name, group, size, long, unit: unitOf, tip, color = ARROW_COLORS[group] } of shownArrows(scene)) {
      if (long < LABELED * whole) continue;
      const paint = `rgb(${color.map((c) => Math.round(dark ? 255 * (0.45 + 0.55 * c) : 200 * c)).join(", ")})`;
      out.push({ text: `${name} ${Number(size.toPrecision(3))} ${unitOf}`, at: tip, color: paint });
    }
  }
  if (show.names) {
    model.bodies.forEach(({ name }, i) => {
      if (!hidden?.has(i)) out.push({ text: name, at: originOf(matrices[i]), strong: i === scene.picked });
    });
    frameMatrices(model, matrices).forEach((m, k) => out.push({ text: model.frames[k].name, at: originOf(m) }));
  } else if (scene.picked >= 0 && scene.picked < matrices.length) {
    out.push({ text: model.bodies[scene.picked].name, at: originOf(matrices[scene.picked]), strong: true });
  }
  return out;
}
