// Small pictures of positions of a mechanism, painted without a graphics processor, as buttons that go there.

import { el } from "./elements.js";
import { painterRenderer } from "./painter.js";

const SIZE = [108, 80]; // [px]

// pictureButtons(app, [q], { label(k), choose(q, k) }) returns one button per position, seen as the stage is.
export function pictureButtons(app, positions, { label, choose }) {
  const { stage } = app;
  const ratio = Math.min(window.devicePixelRatio || 1, 2);
  const camera = stage.view.matrices(SIZE[0] / SIZE[1]);
  return positions.map((q, k) => {
    const canvas = el("canvas", { width: SIZE[0] * ratio, height: SIZE[1] * ratio, "aria-hidden": "true" });
    const scene = { matrices: app.matrices(q), show: { floor: false }, hidden: app.store.get("hidden"), picked: -1 };
    const target = stage.follow ? stage.middle(scene.matrices) : stage.view.target;
    const seen = stage.follow ? stage.view.matrices(SIZE[0] / SIZE[1], target) : camera;
    painterRenderer(canvas, stage.solids).draw(stage.picture(scene, seen, target));
    return el("button", { type: "button", class: "picture", title: `go to ${label(k)}`, "aria-label": label(k), "data-q": Array.from(q).join(","), onclick: () => choose(q, k) }, canvas, el("span", { text: label(k) }));
  });
}
