// Texts beside points of the picture that do not cover each other: the first ones stand, others move or are left out.

import { project } from "./vectors.js";

const SIDES = [
  [1, -1],
  [1, 1],
  [-1, -1],
  [-1, 1],
]; // right above, right below, left above, left below

// labels: [{ text, at: point in space, color, strong }], the most important first.
export function drawLabels(canvas, labels, camera, ratio, palette) {
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  const { width, height } = canvas;
  const size = 12 * ratio * palette.scale;
  pen.lineJoin = "round";
  pen.lineWidth = 3 * ratio;
  pen.textBaseline = "middle";
  const taken = [];
  for (const { text, at, color, strong } of labels) {
    const place = project(camera, at);
    if (!place) continue;
    pen.font = `${strong ? "600 " : ""}${size}px ${palette.font}`;
    const wide = pen.measureText(text).width;
    const [x, y] = [place[0] * width, place[1] * height];
    if (x < -wide || x > width + wide || y < 0 || y > height) continue;
    for (const [right, below] of SIDES) {
      const left = right > 0 ? x + 8 * ratio : x - 8 * ratio - wide;
      const middle = y + below * 9 * ratio;
      const box = { left: left - 2, right: left + wide + 2, top: middle - 0.62 * size, low: middle + 0.62 * size };
      const covers = (other) =>
        box.left < other.right && other.left < box.right && box.top < other.low && other.top < box.low;
      if (box.left < 2 || box.right > width - 2 || taken.some(covers)) continue;
      taken.push(box);
      pen.strokeStyle = palette.halo;
      pen.strokeText(text, left, middle);
      pen.fillStyle = color || palette.text;
      pen.fillText(text, left, middle);
      break;
    }
  }
  return taken.length;
}
