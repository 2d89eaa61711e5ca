// Small pictures of positions of a mechanism, painted without a graphics processor, as buttons that go there.

import { el } from "./elements.js";
import { painterRenderer } from "./painter.js";

const SIZE = [108, 80]; // [px]

// pictureButtons(app, [q], { label(k), choose(q, k) }) returns one button per position, all seen from where the stage
// is seen, to the same scale.
export function pictureButtons(app, positions, { label, choose }) {
  const { stage } = app;
  const ratio = Math.min(window.devicePixelRatio || 1, 2);
  const scenes = positions.map((q) => ({
    matrices: app.matrices(q),
    show: { floor: false },
    hidden: app.store.get("hidden"),
    picked: -1,
  }));
  const aspect = SIZE[0] / SIZE[1];
  const { target, distance } = stage.view.fitted(
    scenes.flatMap((scene) => stage.framing.extent(scene)),
    aspect,
  );
  const camera = stage.view.matrices(aspect, target, distance);
  return positions.map((q, k) => {
    const canvas = el("canvas", { width: SIZE[0] * ratio, height: SIZE[1] * ratio, "aria-hidden": "true" });
    painterRenderer(canvas, stage.solids).draw(stage.picture(scenes[k], camera, target));
    return el(
      "button",
      {
        type: "button",
        class: "picture",
        title: `go to ${label(k)}`,
        "aria-label": label(k),
        "data-q": Array.from(q).join(","),
        onclick: () => choose(q, k),
      },
      canvas,
      el("span", { text: label(k) }),
    );
  });
}
