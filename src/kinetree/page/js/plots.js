// Curves over time beside the stage: one chart per quantity and unit, a cursor at the time of the player, values under
// the pointer, a legend that hides curves, and exports.
//
// plots.show([{ title, unit, series: [{ name, t, values, color?, tone?, dashed? }] }]) where t and values are arrays of
// numbers of the model; angles are shown in the reader's unit. A series may have `count`, the number of valid samples,
// and `stride` and
// `offset` of its values. All of them may be getters: a motion that grows needs `refresh`, not a new `show`. A series
// with `upper` is a band between its values and these. A chart with `axis` { name, unit, first, rate } has first + rate
// t below it
// instead of the time. With `plane` it is a curve in a plane: its series have `x` besides, and `axis` is { name, unit,
// other }.

import { paintChart } from "./chart_paint.js";
import { csvOf, valueAt } from "./chart_series.js";
import { download, el } from "./elements.js";
import { oncePerFrame } from "./frames.js";
import { CanvasPen, SvgPen } from "./pens.js";
import { short, shownUnit } from "./units.js";

export const COLORS = [
  "#1f5fa8",
  "#c8552b",
  "#2f8f5b",
  "#8a4fa3",
  "#b8860b",
  "#3aa0b5",
  "#a33b5c",
  "#5a6472",
  "#6b8e23",
  "#d98fb0",
];
const ON_DARK = [
  "#7fb2ee",
  "#f0936b",
  "#6fc99a",
  "#c79ae0",
  "#e3b94e",
  "#7fd0e0",
  "#ea87a5",
  "#aab4c2",
  "#b3d36a",
  "#f2b8d2",
];

export class Plots {
  constructor(host, store, { seek, name = "kinetree" }) {
    this.host = host;
    this.store = store;
    this.seek = seek;
    this.name = name;
    this.charts = [];
    this.hover = null;
    this.off = new Set();
    this.chosen = [];
    this.usual = []; // titles of the charts that are shown where the reader has not chosen others
    this.more = () => []; // charts of every mode
    this.refresh = oncePerFrame(() => this.draw());
    this.bar = el("div", { class: "plotbar" });
    this.tabs = el("div", { class: "tabs", role: "group", "aria-label": "quantities to plot" });
    this.legend = el("div", { class: "legend" });
    const exportButton = (text, title, action) =>
      el("button", { type: "button", class: "quiet", text, title, onclick: action });
    this.bar.append(
      this.tabs,
      el("span", { class: "spring" }),
      exportButton("PNG", "save the chart as a picture", () => this.savePng()),
      exportButton("SVG", "save the chart as a vector picture", () => this.saveSvg()),
      exportButton("CSV", "save the numbers of all curves", () =>
        download(`${name}.csv`, csvOf(this.charts), "text/csv"),
      ),
    );
    this.canvas = el("canvas", { class: "chart", role: "img", "aria-label": "curves over time" });
    this.body = el("div", { class: "plotbody" }, this.canvas);
    host.append(buildGrip(host), this.bar, this.body, this.legend);
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerleave", () => {
      this.hover = null;
      this.refresh();
    });
    this.canvas.addEventListener("pointerdown", (event) => {
      this.canvas.setPointerCapture(event.pointerId);
      this.point(event, true);
    });
    new ResizeObserver(() => this.refresh()).observe(this.body);
    store.on(["time", "units"], () => this.refresh());
    store.on(["theme"], () => {
      this.showLegend();
      this.refresh();
    });
  }

  show(given) {
    const charts = [...given, ...this.more()];
    const isUsual = String(this.chosen) === String(this.usual);
    this.given = given;
    this.charts = charts;
    this.usual = charts
      .filter((c, k) => !k || (c.group && c.group === charts[0].group) || (k === 1 && this.isWide))
      .slice(0, 2)
      .map((c) => c.title);
    this.chosen = this.chosen.filter((title) => charts.some((c) => c.title === title));
    if (isUsual || !this.chosen.length) this.chosen = this.usual;
    this.tabs.replaceChildren(
      ...charts.map((chart) =>
        el("button", {
          type: "button",
          text: chart.title,
          title: `plot ${chart.title}; with shift, beside the others`,
          "aria-pressed": String(this.chosen.includes(chart.title)),
          onclick: (event) => this.choose(chart.title, event.shiftKey || event.ctrlKey || event.metaKey),
        }),
      ),
    );
    this.host.hidden = !charts.length;
    this.showLegend();
    this.refresh();
  }

  choose(title, beside) {
    const others = this.chosen.filter((other) => other !== title);
    if (!beside) this.chosen = [title];
    else if (others.length < this.chosen.length && others.length) this.chosen = others;
    else this.chosen = this.charts.map((c) => c.title).filter((other) => other === title || others.includes(other));
    this.show(this.given);
  }

  get isWide() {
    return this.body.clientWidth > 900 || innerWidth > 1500;
  }

  get shownCharts() {
    return this.charts.filter((c) => this.chosen.includes(c.title));
  }

  // The color of a series: its own, or that of its number `tone`, by default its place in the chart.
  color(series, k) {
    const palette = this.store.get("theme") === "dark" ? ON_DARK : COLORS;
    return series.color || palette[(series.tone ?? k) % palette.length];
  }

  showLegend() {
    const several = this.shownCharts.length > 1;
    this.readers = [];
    this.legend.replaceChildren(
      ...this.shownCharts.flatMap((chart) =>
        chart.series.map((series, k) => {
          const key = `${chart.title}/${series.name}`;
          const swatch = el("i", { class: series.dashed ? "swatch dashed" : "swatch" });
          swatch.style.color = this.color(series, k);
          const now = el("output", { class: "now" });
          this.readers.push({ chart, series, now });
          return el(
            "button",
            {
              type: "button",
              title: `hide or show ${series.name}`,
              "aria-pressed": String(!this.off.has(key)),
              onclick: () => {
                if (!this.off.delete(key)) this.off.add(key);
                this.showLegend();
                this.refresh();
              },
            },
            swatch,
            el("span", { text: several ? `${chart.title} ${series.name}` : series.name }),
            now,
          );
        }),
      ),
    );
  }

  shown(chart) {
    return chart.series
      .map((series, k) => ({ series, k }))
      .filter(({ series }) => !this.off.has(`${chart.title}/${series.name}`));
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
      const x = chart.along ? null : valueAt(series, t);
      now.textContent = x === null ? "" : `${short(x * factor)} ${unit}`;
      now.dataset.value = x === null ? "" : String(x);
    }
  }

  // The chosen charts side by side; a live picture has marks at the time of the player and of the pointer.
  paint(pen, w, h, live) {
    const style = getComputedStyle(this.host);
    const [ink, faint, line] = ["--ink", "--faint", "--line"].map((name) => style.getPropertyValue(name).trim());
    const size = 11 * Number(style.getPropertyValue("--label").trim() || 1);
    const stroke = Number(style.getPropertyValue("--stroke").trim() || 1.6);
    const look = { ink, faint, line, size, stroke, font: style.fontFamily, units: this.store.get("units") };
    const marks = { now: live ? this.store.get("time") : null, hover: live ? this.hover : null };
    const charts = this.shownCharts;
    this.frames = charts.map((chart, k) => {
      const shown = this.shown(chart).map((entry) => ({
        series: entry.series,
        color: this.color(entry.series, entry.k),
      }));
      return paintChart(pen, { ...look, ...marks, chart, shown }, (k * w) / charts.length, w / charts.length, h);
    });
  }

  point(event, chosen = false) {
    const box = this.canvas.getBoundingClientRect();
    const frame = (this.frames || []).find(({ left, wide }) => event.clientX - box.left <= left + wide);
    if (!frame || frame.plane) return;
    const { x, w, t0, t1 } = frame;
    const t = t0 + Math.min(1, Math.max(0, (event.clientX - box.left - x) / w)) * (t1 - t0);
    this.hover = t;
    if (chosen || event.buttons & 1) this.seek(t);
    this.refresh();
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

const LEAST = 140; // [px] of the height of the charts
const STEP = 30; // [px] of a key

// The upper edge of the charts, by which they are made higher or lower.
function buildGrip(host) {
  const set = (height) => {
    host.style.height = `${Math.max(LEAST, Math.min(0.75 * innerHeight, height))}px`;
    grip.setAttribute("aria-valuenow", String(Math.round(host.offsetHeight)));
  };
  const grip = el("div", {
    class: "grip",
    role: "separator",
    tabindex: "0",
    title: "height of the charts",
    "aria-label": "height of the charts",
    "aria-orientation": "horizontal",
    "aria-valuemin": String(LEAST),
    "aria-valuenow": "230",
    onpointerdown: (event) => grip.setPointerCapture(event.pointerId),
    onpointermove: (event) => event.buttons & 1 && set(host.getBoundingClientRect().bottom - event.clientY),
    onkeydown: (event) => {
      const way = { ArrowUp: 1, ArrowDown: -1 }[event.key];
      if (way) set(host.offsetHeight + way * STEP);
    },
  });
  return grip;
}
