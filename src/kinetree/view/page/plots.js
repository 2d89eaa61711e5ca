// Curves over time beside the stage: one chart per quantity and unit, a cursor at the time of the player, values under the
// pointer, a legend that hides curves, and exports.
//
// plots.show([{ title, unit, series: [{ name, t, values, color?, tone?, dashed? }] }]) where t and values are arrays of numbers of
// the model; angles are shown in the reader's unit. A series may have `count`, the number of valid samples, and `stride` and
// `offset` of its values. All of them may be getters: a motion that grows needs `refresh`, not a new `show`.

import { download, el } from "./elements.js";
import { oncePerFrame } from "./frames.js";
import { CanvasPen, SvgPen } from "./pens.js";
import { short, shownUnit } from "./units.js";

export const COLORS = ["#1f5fa8", "#c8552b", "#2f8f5b", "#8a4fa3", "#b8860b", "#3aa0b5", "#a33b5c", "#5a6472", "#6b8e23", "#d98fb0"];
const ON_DARK = ["#7fb2ee", "#f0936b", "#6fc99a", "#c79ae0", "#e3b94e", "#7fd0e0", "#ea87a5", "#aab4c2", "#b3d36a", "#f2b8d2"];
const EDGES = { left: 58, right: 12, top: 24, bottom: 22 };

export class Plots {
  constructor(host, store, { seek, name = "kinetree" }) {
    Object.assign(this, { host, store, seek, name, charts: [], hover: null, off: new Set(), chosen: [] });
    this.refresh = oncePerFrame(() => this.draw());
    this.bar = el("div", { class: "plotbar" });
    this.tabs = el("div", { class: "tabs", role: "group", "aria-label": "quantities to plot" });
    this.legend = el("div", { class: "legend" });
    const exportButton = (text, title, action) => el("button", { type: "button", class: "quiet", text, title, onclick: action });
    this.bar.append(this.tabs, el("span", { class: "spring" }),
      exportButton("PNG", "save the chart as a picture", () => this.savePng()),
      exportButton("SVG", "save the chart as a vector picture", () => this.saveSvg()),
      exportButton("CSV", "save the numbers of all curves", () => download(`${name}.csv`, this.csv(), "text/csv")));
    this.canvas = el("canvas", { class: "chart", role: "img", "aria-label": "curves over time" });
    this.body = el("div", { class: "plotbody" }, this.canvas);
    host.append(this.bar, this.body, this.legend);
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerleave", () => { this.hover = null; this.refresh(); });
    this.canvas.addEventListener("pointerdown", (event) => {
      this.canvas.setPointerCapture(event.pointerId);
      this.point(event, true);
    });
    new ResizeObserver(() => this.refresh()).observe(this.body);
    store.on(["time", "units"], () => this.refresh());
    store.on(["theme"], () => { this.showLegend(); this.refresh(); });
  }

  show(charts) {
    this.charts = charts;
    this.chosen = this.chosen.filter((title) => charts.some((c) => c.title === title));
    if (!this.chosen.length) this.chosen = charts.slice(0, this.body.clientWidth > 900 || innerWidth > 1500 ? 2 : 1).map((c) => c.title);
    this.tabs.replaceChildren(...charts.map((chart) => el("button", {
      type: "button", text: chart.title, title: `plot ${chart.title}; with shift, beside the others`,
      "aria-pressed": String(this.chosen.includes(chart.title)), onclick: (event) => this.choose(chart.title, event.shiftKey || event.ctrlKey || event.metaKey),
    })));
    this.host.hidden = !charts.length;
    this.showLegend();
    this.refresh();
  }

  choose(title, beside) {
    const others = this.chosen.filter((other) => other !== title);
    if (!beside) this.chosen = [title];
    else if (others.length < this.chosen.length && others.length) this.chosen = others;
    else this.chosen = this.charts.map((c) => c.title).filter((other) => other === title || others.includes(other));
    this.show(this.charts);
  }

  get shownCharts() { return this.charts.filter((c) => this.chosen.includes(c.title)); }

  // The color of a series: its own, or that of its number `tone`, by default its place in the chart.
  color(series, k) {
    const palette = this.store.get("theme") === "dark" ? ON_DARK : COLORS;
    return series.color || palette[(series.tone ?? k) % palette.length];
  }

  showLegend() {
    const several = this.shownCharts.length > 1;
    this.readers = [];
    this.legend.replaceChildren(...this.shownCharts.flatMap((chart) => chart.series.map((series, k) => {
      const key = `${chart.title}/${series.name}`;
      const swatch = el("i", { class: series.dashed ? "swatch dashed" : "swatch" });
      swatch.style.color = this.color(series, k);
      const now = el("output", { class: "now" });
      this.readers.push({ chart, series, now });
      return el("button", {
        type: "button", title: `hide or show ${series.name}`, "aria-pressed": String(!this.off.has(key)),
        onclick: () => {
          if (!this.off.delete(key)) this.off.add(key);
          this.showLegend();
          this.refresh();
        },
      }, swatch, el("span", { text: several ? `${chart.title} ${series.name}` : series.name }), now);
    })));
  }

  shown(chart) {
    return chart.series.map((series, k) => ({ series, k })).filter(({ series }) => !this.off.has(`${chart.title}/${series.name}`));
  }

  // The ranges of time and values of a chart.
  ranges(chart) {
    let [t0, t1, low, high] = [Infinity, -Infinity, Infinity, -Infinity];
    for (const { series } of this.shown(chart)) {
      const { t, n, at } = reader(series);
      if (!n) continue;
      [t0, t1] = [Math.min(t0, t[0]), Math.max(t1, t[n - 1])];
      for (let k = 0; k < n; k++) {
        const x = at(k);
        if (x < low) low = x;
        if (x > high) high = x;
      }
    }
    if (!(t1 >= t0)) [t0, t1] = [0, 1];
    if (t1 === t0) t1 = t0 + 1;
    if (!(high >= low)) [low, high] = [0, 1];
    // Rounding errors of a quantity that stays zero or constant are no curve.
    const pad = high - low > Math.max(1e-12, 1e-12 * Math.max(Math.abs(low), Math.abs(high))) ? 0.06 * (high - low) : Math.max(1e-3, 0.1 * Math.abs(high));
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
    const t = this.hover ?? this.store.get("time");
    for (const { chart, series, now } of this.readers) {
      const { factor, unit } = shownUnit(chart.unit, this.store.get("units"));
      const x = valueAt(series, t);
      now.textContent = x === null ? "" : `${short(x * factor)} ${unit}`;
      now.dataset.value = x === null ? "" : String(x);
    }
  }

  // The chosen charts side by side.
  paint(pen, w, h, live) {
    const charts = this.shownCharts;
    this.frames = charts.map((chart, k) => this.paintChart(pen, chart, (k * w) / charts.length, w / charts.length, h, live));
  }

  paintChart(pen, chart, x0, w, h, live) {
    const style = getComputedStyle(this.host);
    const [ink, faint, line] = ["--ink", "--faint", "--line"].map((name) => style.getPropertyValue(name).trim());
    const size = 11 * Number(style.getPropertyValue("--label").trim() || 1);
    const text = { color: faint, font: style.fontFamily, size };
    const { t0, t1, low, high } = this.ranges(chart);
    const box = { x: x0 + EDGES.left, y: EDGES.top, w: w - EDGES.left - EDGES.right, h: h - EDGES.top - EDGES.bottom };
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
    pen.text(x0 + w - EDGES.right, 14, "t [s]", { ...text, align: "right" });
    pen.clip(box.x, box.y - 2, box.w, box.h + 4, () => {
      for (const { series, k } of this.shown(chart)) {
        pen.path(thinned(series, px, py, box.w), { color: this.color(series, k), width: 1.6, dash: series.dashed ? [5, 3] : [] });
      }
    });
    const frame = { ...box, t0, t1, left: x0, wide: w };
    if (!live) return frame;
    const now = this.store.get("time");
    for (const t of this.hover === null ? [now] : [now, this.hover]) {
      if (t < t0 - 1e-9 || t > t1 + 1e-9) continue;
      pen.path([px(t), box.y, px(t), box.y + box.h], { color: t === now ? ink : faint, width: 1, dash: t === now ? [] : [2, 2] });
      for (const { series, k } of this.shown(chart)) {
        const x = valueAt(series, t);
        if (x !== null) pen.dot(px(t), py(x), 2.8, this.color(series, k));
      }
    }
    return frame;
  }

  point(event, chosen = false) {
    const box = this.canvas.getBoundingClientRect();
    const frame = (this.frames || []).find(({ left, wide }) => event.clientX - box.left <= left + wide);
    if (!frame) return;
    const { x, w, t0, t1 } = frame;
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
        const { t, n, at } = reader(series);
        if (!groups.has(t)) groups.set(t, { count: n, columns: [] });
        groups.get(t).columns.push([`${chart.title}.${series.name} [${chart.unit}]`, at]);
      }
    }
    const heads = [...groups].flatMap(([, { columns }], g) => [g ? `t${g + 1} [s]` : "t [s]", ...columns.map(([name]) => quoted(name))]);
    const rows = Math.max(0, ...[...groups].map(([, { count }]) => count));
    const lines = [heads.join(",")];
    for (let k = 0; k < rows; k++) {
      lines.push([...groups].flatMap(([t, { count, columns }]) => (k < count ? [t[k], ...columns.map(([, at]) => at(k))] : ["", ...columns.map(() => "")])).join(","));
    }
    return `${lines.join("\n")}\n`;
  }

  saveSvg() {
    const [w, h] = [this.body.clientWidth, this.body.clientHeight];
    const pen = new SvgPen(w, h, getComputedStyle(this.host).backgroundColor);
    this.paint(pen, w, h, false);
    download(`${this.name}-${this.chosen.join("-")}.svg`, pen.source, "image/svg+xml");
  }

  savePng() {
    const [w, h] = [this.body.clientWidth, this.body.clientHeight];
    const sheet = el("canvas", { width: 2 * w, height: 2 * h });
    const pen = new CanvasPen(sheet, 2);
    pen.path([0, 0, w, 0, w, h, 0, h], { fill: getComputedStyle(this.host).backgroundColor });
    this.paint(pen, w, h, false);
    sheet.toBlob((blob) => download(`${this.name}-${this.chosen.join("-")}.png`, blob));
  }
}

// Columns of values [n] per label as charts of one unit each.
export function charts(title, labels, units, t, columns, { count, dashed, prefix = "" } = {}) {
  return byUnit(title, units, (k) => ({ name: prefix + labels[k], t, values: columns[k], count, dashed }));
}

const WORDS = { // titles of the charts of a quantity whose entries have several units
  position: { rad: "angle", m: "displacement", 1: "quaternion" }, velocity: { "rad/s": "angular velocity", "m/s": "velocity" },
  acceleration: { "rad/s^2": "angular acceleration", "m/s^2": "acceleration" },
  momentum: { "N m s": "angular momentum", "N s": "momentum" }, torque: { "N m": "torque", N: "force" }, "drive torque": { "N m": "drive torque", N: "drive force" },
};

// One chart per unit; make(k) returns the series of entry k.
export function byUnit(title, units, make) {
  const found = [...new Set(units)];
  return found.map((unit) => ({
    title: found.length === 1 ? title : WORDS[title]?.[unit] || `${title} ${unit}`, unit,
    series: units.flatMap((own, k) => (own === unit ? [make(k)] : [])),
  }));
}

// Charts of a motion, which may grow: positions, velocities and its further columns. Those of a `ghost` are dashed.
export function motionCharts(model, motion, ghost = null) {
  const groups = [
    ["position", model.coordinates, (m) => m.q, model.nq],
    ["velocity", model.velocities, (m) => m.qd, model.nv],
    ...motion.columns.map((column, c) => [
      column.name, column.labels.map((label, k) => ({ label, unit: column.units[k] })), (m, k) => m.columns[c]?.values[k] || [], 0,
    ]),
  ];
  return groups.flatMap(([title, entries, values, stride]) => byUnit(title, entries.map((e) => e.unit), (k) => k).map((chart) => {
    const series = (from, k, dashed) => ({
      name: dashed ? `${entries[k].label}, before` : entries[k].label, dashed, tone: chart.series.indexOf(k),
      stride: stride || 1, offset: stride ? k : 0,
      get t() { return from.t; },
      get count() { return from.count; },
      get values() { return values(from, k); },
    });
    return { ...chart, series: [...chart.series.map((k) => series(motion, k, false)), ...(ghost ? chart.series.map((k) => series(ghost, k, true)) : [])] };
  }));
}

function quoted(text) {
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

// Times, number of samples, and the value of a sample.
function reader(series) {
  const { t, values, stride = 1, offset = 0 } = series;
  return { t, n: series.count ?? t.length, at: (k) => values[k * stride + offset] };
}

function valueAt(series, time) {
  const { t, n, at } = reader(series);
  if (!n || time < t[0] - 1e-9 || time > t[n - 1] + 1e-9) return null;
  let [low, high] = [0, n - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (t[middle] <= time + 1e-12) low = middle;
    else high = middle - 1;
  }
  if (low + 1 >= n) return at(low);
  const share = (time - t[low]) / (t[low + 1] - t[low]);
  return share <= 1e-9 ? at(low) : at(low) + share * (at(low + 1) - at(low));
}

// Points of a curve; where there are many per pixel, the least and the largest of each.
function thinned(series, px, py, wide) {
  const { t, n, at } = reader(series);
  const out = [];
  const every = Math.max(1, Math.floor(n / (2 * wide)));
  for (let k = 0; k < n; k += every) {
    let [low, high] = [k, k];
    for (let j = k; j < Math.min(n, k + every); j++) {
      if (at(j) < at(low)) low = j;
      if (at(j) > at(high)) high = j;
    }
    for (const j of low === high ? [low] : low < high ? [low, high] : [high, low]) out.push(px(t[j]), py(at(j)));
  }
  if (n && every > 1) out.push(px(t[n - 1]), py(at(n - 1)));
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
