// Draw without a graphics processor: triangles from back to front on a plain canvas.

import { cross, dot, project, sub, transform, unit } from "./vectors.js";

export function painterRenderer(canvas, solids) {
  const pen = canvas.getContext("2d");
  const { vertices, faces } = solids;

  function toPixels(camera, p) {
    const place = project(camera, p);
    return place && [place[0] * canvas.width, place[1] * canvas.height, place[2]];
  }

  function drawLines(lines, camera) {
    for (const one of lines) {
      const step = one.strip ? 3 : 6;
      const [r, g, b, alpha] = one.color;
      const ratio = canvas.width / (canvas.clientWidth || canvas.width);
      pen.lineWidth = (one.width || 1) * ratio;
      for (let k = 0; k + 5 < one.points.length; k += step) {
        const part = one.fades ? (k + step) / one.points.length : 1;
        if (k === 0 || one.fades) {
          if (k) pen.stroke();
          pen.beginPath();
          pen.strokeStyle = `rgba(${255 * r}, ${255 * g}, ${255 * b}, ${alpha * part})`;
        }
        const a = toPixels(camera, one.points.subarray(k, k + 3));
        const z = toPixels(camera, one.points.subarray(k + 3, k + 6));
        if (!a || !z) continue;
        pen.moveTo(a[0], a[1]);
        pen.lineTo(z[0], z[1]);
      }
      pen.stroke();
    }
  }

  function triangles(picture, items) {
    const out = [];
    for (const item of items) {
      for (let k = item.first; k < item.first + item.count; k += 3) {
        const corners = [0, 1, 2].map((j) => {
          const v = 9 * faces[k + j];
          return transform(item.matrix, vertices.subarray(v, v + 3));
        });
        const normal = unit(cross(sub(corners[1], corners[0]), sub(corners[2], corners[0])));
        if (dot(normal, sub(picture.camera.eye, corners[0])) <= 0) continue;
        const pixels = corners.map((p) => toPixels(picture.camera, p));
        if (pixels.includes(null)) continue;
        const v = 9 * faces[k] + 6;
        const color = Array.from(item.color || vertices.subarray(v, v + 3), (c) => c + picture.lift * (1 - c));
        const bright = 0.4 + 0.2 * dot(normal, picture.up) + 0.5 * Math.max(0, dot(normal, picture.light));
        out.push({ pixels, depth: pixels[0][2] + pixels[1][2] + pixels[2][2], color, bright, alpha: item.alpha ?? 1 });
      }
    }
    return out.sort((a, b) => b.depth - a.depth);
  }

  function fill(pieces) {
    for (const { pixels, color, bright, alpha } of pieces) {
      pen.globalAlpha = alpha;
      const [r, g, b] = [0, 1, 2].map((k) => Math.round(255 * Math.min(1, bright * color[k] + 0.03)));
      pen.fillStyle = pen.strokeStyle = `rgb(${r}, ${g}, ${b})`;
      pen.lineWidth = 0.7;
      pen.beginPath();
      pen.moveTo(pixels[0][0], pixels[0][1]);
      pen.lineTo(pixels[1][0], pixels[1][1]);
      pen.lineTo(pixels[2][0], pixels[2][1]);
      pen.closePath();
      pen.fill();
      if (alpha === 1) pen.stroke();
    }
    pen.globalAlpha = 1;
  }

  return {
    draw(picture) {
      pen.clearRect(0, 0, canvas.width, canvas.height);
      drawLines(picture.floor, picture.camera);
      fill(triangles(picture, picture.items));
      drawLines([...picture.lines, ...picture.over], picture.camera);
      fill(triangles(picture, picture.marks));
    },
  };
}
