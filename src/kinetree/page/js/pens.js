// Two pens with the same strokes: one on a canvas, one that writes SVG. Lengths are CSS pixels.

/** @typedef {{ color?: string, width?: number, dash?: number[], fill?: ?string, alpha?: number }} Stroke */

export class CanvasPen {
  constructor(canvas, ratio) {
    this.pen = canvas.getContext("2d", { willReadFrequently: true }); // painted by the processor
    this.pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  }

  /**
   * @param {ArrayLike<number>} points
   * @param {Stroke} stroke
   */
  path(points, { color, width = 1, dash = [], fill = null, alpha = 1 }) {
    const { pen } = this;
    pen.beginPath();
    for (let k = 0; k < points.length; k += 2) {
      if (Number.isNaN(points[k + 1])) continue;
      if (k === 0 || Number.isNaN(points[k - 1])) pen.moveTo(points[k], points[k + 1]);
      else pen.lineTo(points[k], points[k + 1]);
    }
    pen.lineJoin = "round";
    pen.setLineDash(dash);
    if (fill) {
      pen.fillStyle = fill;
      pen.globalAlpha = alpha;
      pen.fill();
      pen.globalAlpha = 1;
    } else {
      pen.strokeStyle = color;
      pen.lineWidth = width;
      pen.stroke();
    }
  }

  dot(x, y, r, color) {
    const { pen } = this;
    pen.beginPath();
    pen.arc(x, y, r, 0, 2 * Math.PI);
    pen.fillStyle = color;
    pen.fill();
  }

  text(x, y, text, { color, size = 11, align = "start", font, weight = 400 }) {
    const { pen } = this;
    pen.font = `${weight} ${size}px ${font}`;
    pen.textAlign = align;
    pen.textBaseline = "alphabetic";
    pen.fillStyle = color;
    pen.fillText(text, x, y);
  }

  width(text, size, font) {
    this.pen.font = `${size}px ${font}`;
    return this.pen.measureText(text).width;
  }

  clip(x, y, w, h, inside) {
    const { pen } = this;
    pen.save();
    pen.beginPath();
    pen.rect(x, y, w, h);
    pen.clip();
    inside();
    pen.restore();
  }
}

const escaped = (text) => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
const plain = (x) => String(Math.round(100 * x) / 100);

export class SvgPen {
  constructor(width, height, background) {
    this.size = [width, height];
    this.parts = [`<rect width="${width}" height="${height}" fill="${background}"/>`];
    this.clips = 0;
  }

  /**
   * @param {ArrayLike<number>} points
   * @param {Stroke} stroke
   */
  path(points, { color, width = 1, dash = [], fill = null, alpha = 1 }) {
    let d = "";
    for (let k = 0; k < points.length; k += 2) {
      if (Number.isNaN(points[k + 1])) continue;
      d += `${d === "" || Number.isNaN(points[k - 1]) ? "M" : "L"}${plain(points[k])} ${plain(points[k + 1])}`;
    }
    const dashes = dash.length ? ` stroke-dasharray="${dash.join(" ")}"` : "";
    this.parts.push(
      fill
        ? `<path d="${d}" fill="${escaped(fill)}"${alpha < 1 ? ` fill-opacity="${alpha}"` : ""}/>`
        : `<path d="${d}" fill="none" stroke="${escaped(color)}" stroke-width="${width}" ` +
            `stroke-linejoin="round"${dashes}/>`,
    );
  }

  dot(x, y, r, color) {
    this.parts.push(`<circle cx="${plain(x)}" cy="${plain(y)}" r="${r}" fill="${escaped(color)}"/>`);
  }

  text(x, y, text, { color, size = 11, align = "start", font, weight = 400 }) {
    const anchor = { start: "start", center: "middle", end: "end", left: "start", right: "end" }[align];
    this.parts.push(
      `<text x="${plain(x)}" y="${plain(y)}" fill="${escaped(color)}" font-family="${escaped(font)}" ` +
        `font-size="${size}" ` +
        `font-weight="${weight}" text-anchor="${anchor}">${escaped(text)}</text>`,
    );
  }

  width(text, size) {
    return 0.56 * size * text.length;
  }

  clip(x, y, w, h, inside) {
    const id = `clip${(this.clips += 1)}`;
    this.parts.push(
      `<clipPath id="${id}"><rect x="${plain(x)}" y="${plain(y)}" width="${plain(w)}" ` +
        `height="${plain(h)}"/></clipPath><g clip-path="url(#${id})">`,
    );
    inside();
    this.parts.push("</g>");
  }

  get source() {
    const [w, h] = this.size;
    return (
      `<svg xmlns="http://www.w3.org/2000/svg" width="${w}" height="${h}" viewBox="0 0 ${w} ` +
      `${h}">${this.parts.join("")}</svg>\n`
    );
  }
}
