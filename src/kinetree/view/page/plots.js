// Curves over time beside the stage: one chart per quantity and unit, a cursor at the time of the player, values under the
// pointer, a legend that hides curves, and exports.
//
// plots.show([{ title, unit, series: [{ name, t, values, color?, dashed? }] }]) where t and values are arrays of numbers of
// the model; angles are shown in the reader's unit. `count` on a series bounds how many samples are valid.

import { download, el } from "./elements.js";
import { CanvasPen, SvgPen } from "./pens.js";
import { short, shownUnit } from "./units.js";

export const COLORS = ["#1f5fa8", "#c8552b", "#2f8f5b", "#8a4fa3", "#b8860b", "#3aa0b5", "#a33b5c", "#5a6472", "#6b8e23", "#d98fb0"];
const EDGES = { left: 58, right: 12, top: 24, bottom: 22 };

export class Plots {
  constructor(host, store, { seek, name = "kinetree" }) {
    Object.assign(this, { host, store, seek, name, charts: [], hover: null, off: new Set(), asked: false, chosen: null });
    this.bar = el("div", { class: "plotbar" });
    this.tabs = el("div", { class: "tabs", role: "tablist", "aria-label": "quantities to plot" });
    this.legend = el("div", { class: "legend" });
    const exportButton = (text, title, action) => el("button", { type: "button", class: "quiet", text, title, onclick: action });
    this.bar.append(this.tabs, el("span", { class: "spring" }),
      exportButton("PNG", "save the chart as a picture", () => this.savePng()),
      exportButton("SVG", "save the chart as a vector picture", () => this.saveSvg()),
      exportButton("CSV", "save the numbers of all curves", () => download(`${name}.csv`, this.csv(), "text/csv")));
    this.canvas = el("canvas", { class: "chart", role: "img", "aria-label": "curves over time", tabindex: "-1" });
    this.body = el("div", { class: "plotbody" }, this.canvas);
    host.append(this.bar, this.body, this.legend);
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerleave", () => { this.hover = null; this.refresh(); });
    this.canvas.addEventListener("pointerdown", (event) => {
      this.canvas.setPointerCapture(event.pointerId);
      this.point(event, true);
    });
    new ResizeObserver(() => this.refresh()).observe(this.body);
    store.on(["time", "units", "theme"], () => this.refresh());
  }

  show(charts) {
    this.charts = charts;
    const titles = charts.map((c) => c.title);
    if (!titles.includes(this.chosen)) this.chosen = titles[0] ?? null;
    this.tabs.replaceChildren(...charts.map((chart) => el("button", {
      type: "button", role: "tab", text: chart.title, title: `plot ${chart.title}`,
      "aria-selected": String(chart.title === this.chosen),
      onclick: () => { this.chosen = chart.title; this.show(this.charts); },
    })));
    this.host.hidden = !charts.length;
    this.showLegend();
    this.refresh();
  }

  get chart() { return this.charts.find((c) => c.title === this.chosen) || null; }

  color(series, k) { return series.color || COLORS[k % COLORS.length]; }

  showLegend() {
    const { chart } = this;
    this.legend.replaceChildren(...(chart ? chart.series.map((series, k) => {
      const key = `${chart.title}/${series.name}`;
      const swatch = el("i", { class: series.dashed ? "swatch dashed" : "swatch" });
      swatch.style.color = this.color(series, k);
      return el("button", {
        type: "button", title: `hide or show ${series.name}`, "aria-pressed": String(!this.off.has(key)),
        onclick: () => {
          if (!this.off.delete(key)) this.off.add(key);
          this.showLegend();
          this.refresh();
        },
      }, swatch, el("span", { text: series.name }), el("output", { class: "now" }));
    }) : []));
  }

  refresh() {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => {
      this.asked = false;
      this.draw();
    });
  }

  shown() {
    const { chart } = this;
    return chart ? chart.series.map((series, k) => ({ series, k })).filter(({ series }) => !this.off.has(`${chart.title}/${series.name}`)) : [];
  }

  // The ranges of time and values of the chosen chart.
  ranges() {
    let [t0, t1, low, high] = [Infinity, -Infinity, Infinity, -Infinity];
    for (const { series } of this.shown()) {
      const n = series.count ?? series.t.length;
      if (!n) continue;
      [t0, t1] = [Math.min(t0, series.t[0]), Math.max(t1, series.t[n - 1])];
      for (let k = 0; k < n; k++) {
        const x = series.values[k];
        if (x < low) low = x;
        if (x > high) high = x;
      }
    }
    if (!(t1 >= t0)) [t0, t1] = [0, 1];
    if (t1 === t0) t1 = t0 + 1;
    if (!(high >= low)) [low, high] = [0, 1];
    const pad = high - low > 1e-12 * Math.max(Math.abs(low), Math.abs(high)) ? 0.06 * (high - low) : Math.max(1e-3, 0.1 * Math.abs(high));
    return { t0, t1, low: low - pad, high: high + pad };
  }

  draw() {
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    const [w, h] = [this.body.clientWidth, this.body.clientHeight];
    if (w < 40 || h < 40) return;
    if (this.canvas.width !== Math.round(w * ratio) || this.canvas.height !== Math.round(h * ratio)) {
      [this.canvas.width, this.canvas.height] = [Math.round(w * ratio), Math.round(h * ratio)];
    }
    const pen = new CanvasPen(this.canvas, ratio);
    pen.pen.clearRect(0, 0, w, h);
    this.paint(pen, w, h, true);
    this.readings();
  }

  // Values of the curves at the time of the pointer or of the player, in the legend.
  readings() {
    const { chart } = this;
    if (!chart) return;
    const t = this.hover ?? this.store.get("time");
    const { factor, unit } = shownUnit(chart.unit, this.store.get("units"));
    [...this.legend.children].forEach((button, k) => {
      const x = valueAt(chart.series[k], t);
      const output = button.querySelector(".now");
      output.textContent = x === null ? "" : `${short(x * factor)} ${unit}`;
      output.dataset.value = x === null ? "" : String(x);
    });
  }

  paint(pen, w, h, live) {
    const { chart } = this;
    if (!chart) return;
    const style = getComputedStyle(this.host);
    const [ink, faint, line] = ["--ink", "--faint", "--line"].map((name) => style.getPropertyValue(name).trim());
    const size = 11 * Number(style.getPropertyValue("--label").trim() || 1);
    const text = { color: faint, font: style.fontFamily, size };
    const { t0, t1, low, high } = this.ranges();
    const box = { x: EDGES.left, y: EDGES.top, w: w - EDGES.left - EDGES.right, h: h - EDGES.top - EDGES.bottom };
    this.frame = { ...box, t0, t1 };
    const { factor, unit } = shownUnit(chart.unit, this.store.get("units"));
    const px = (t) => box.x + ((t - t0) / (t1 - t0)) * box.w;
    const py = (x) => box.y + box.h - ((x - low) / (high - low)) * box.h;
    for (const x of ticks(low * factor, high * factor, Math.max(2, Math.floor(box.h / 34)))) {
      pen.path([box.x, py(x / factor), box.x + box.w, py(x / factor)], { color: line, width: Math.abs(x) < 1e-12 ? 1.4 : 0.7 });
      pen.text(box.x - 6, py(x / factor) + 0.35 * size, tickText(x), { ...text, align: "right" });
    }
    for (const t of ticks(t0, t1, Math.max(2, Math.floor(box.w / 80)))) {
      pen.path([px(t), box.y + box.h, px(t), box.y + box.h + 4], { color: faint });
      pen.text(px(t), box.y + box.h + 15, tickText(t), { ...text, align: "center" });
    }
    pen.text(box.x, 14, `${chart.title}${unit ? ` [${unit}]` : ""}`, { ...text, color: ink, weight: 600 });
    pen.text(w - EDGES.right, 14, "t [s]", { ...text, align: "right" });
    pen.clip(box.x, box.y - 2, box.w, box.h + 4, () => {
      for (const { series, k } of this.shown()) {
        pen.path(thinned(series, px, py, box.w), { color: this.color(series, k), width: 1.6, dash: series.dashed ? [5, 3] : [] });
      }
    });
    if (!live) return;
    const now = this.store.get("time");
    for (const t of this.hover === null ? [now] : [now, this.hover]) {
      if (t < t0 - 1e-9 || t > t1 + 1e-9) continue;
      pen.path([px(t), box.y, px(t), box.y + box.h], { color: t === now ? ink : faint, width: 1, dash: t === now ? [] : [2, 2] });
      for (const { series, k } of this.shown()) {
        const x = valueAt(series, t);
        if (x !== null) pen.dot(px(t), py(x), 2.8, this.color(series, k));
      }
    }
  }

  point(event, chosen = false) {
    if (!this.frame) return;
    const box = this.canvas.getBoundingClientRect();
    const { x, w, t0, t1 } = this.frame;
    const t = t0 + Math.min(1, Math.max(0, (event.clientX - box.left - x) / w)) * (t1 - t0);
    this.hover = t;
    if (chosen || event.buttons & 1) this.seek(t);
    this.refresh();
  }

  // All curves of all charts over time, in SI units and radians, numbers in full. Each group of times has its own column.
  csv() {
    const groups = new Map(); // times -> columns
    for (const chart of this.charts) {
      for (const series of chart.series) {
        if (!groups.has(series.t)) groups.set(series.t, { count: series.count ?? series.t.length, columns: [] });
        groups.get(series.t).columns.push([`${chart.title}.${series.name} [${chart.unit}]`, series.values]);
      }
    }
    const heads = [...groups].flatMap(([, { columns }], g) => [g ? `t${g + 1} [s]` : "t [s]", ...columns.map(([name]) => quoted(name))]);
    const rows = Math.max(0, ...[...groups].map(([, { count }]) => count));
    const lines = [heads.join(",")];
    for (let k = 0; k < rows; k++) {
      lines.push([...groups].flatMap(([t, { count, columns }]) => (k < count ? [t[k], ...columns.map(([, values]) => values[k])] : ["", ...columns.map(() => "")])).join(","));
    }
    return `${lines.join("\n")}\n`;
  }

  saveSvg() {
    const [w, h] = [this.body.clientWidth, this.body.clientHeight];
    const pen = new SvgPen(w, h, getComputedStyle(this.host).backgroundColor);
    this.paint(pen, w, h, false);
    download(`${this.name}-${this.chosen}.svg`, pen.source, "image/svg+xml");
  }

  savePng() {
    const [w, h] = [this.body.clientWidth, this.body.clientHeight];
    const sheet = el("canvas", { width: 2 * w, height: 2 * h });
    const pen = new CanvasPen(sheet, 2);
    pen.path([0, 0, w, 0, w, h, 0, h], { fill: getComputedStyle(this.host).backgroundColor });
    this.paint(pen, w, h, false);
    sheet.toBlob((blob) => download(`${this.name}-${this.chosen}.png`, blob));
  }
}

// Columns of values [n] per label as charts of one unit each.
export function charts(title, labels, units, t, columns, { count, dashed, prefix = "" } = {}) {
  const found = [...new Set(units)];
  return found.map((unit) => ({
    title: found.length > 1 ? `${title} (${unit})` : title, unit,
    series: labels.flatMap((label, k) => (units[k] === unit ? [{ name: prefix + label, t, values: columns[k], count, dashed }] : [])),
  }));
}

function quoted(text) {
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function valueAt(series, t) {
  const n = series.count ?? series.t.length;
  if (!n || t < series.t[0] - 1e-9 || t > series.t[n - 1] + 1e-9) return null;
  let [low, high] = [0, n - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (series.t[middle] <= t + 1e-12) low = middle;
    else high = middle - 1;
  }
  if (low + 1 >= n) return series.values[low];
  const share = (t - series.t[low]) / (series.t[low + 1] - series.t[low]);
  return share <= 1e-9 ? series.values[low] : series.values[low] + share * (series.values[low + 1] - series.values[low]);
}

// Points of a curve; where there are many per pixel, the least and the largest of each.
function thinned(series, px, py, wide) {
  const n = series.count ?? series.t.length;
  const out = [];
  const every = Math.max(1, Math.floor(n / (2 * wide)));
  for (let k = 0; k < n; k += every) {
    let [low, high] = [k, k];
    for (let j = k; j < Math.min(n, k + every); j++) {
      if (series.values[j] < series.values[low]) low = j;
      if (series.values[j] > series.values[high]) high = j;
    }
    for (const j of low === high ? [low] : low < high ? [low, high] : [high, low]) out.push(px(series.t[j]), py(series.values[j]));
  }
  if (n && every > 1) out.push(px(series.t[n - 1]), py(series.values[n - 1]));
  return out;
}

function ticks(low, high, count) {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((k) => k * power).find((s) => s >= rough * 0.999);
  const out = [];
  for (let x = Math.ceil(low / step - 1e-9) * step; x <= high + 1e-9 * step; x += step) out.push(Math.abs(x) < 1e-9 * step ? 0 : x);
  return out;
}

const tickText = (x) => (x !== 0 && (Math.abs(x) >= 1e5 || Math.abs(x) < 1e-3) ? x.toExponential(1) : String(Number(x.toPrecision(6))));
