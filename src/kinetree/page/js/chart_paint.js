// The picture of one chart, by a pen of a canvas or of SVG (pens.js): axes, curves, bands, and marks at times.
//
// `sheet` is { chart, shown: [{ series, color }], units, ink, faint, line, font, size, stroke, now, hover }: now and
// hover are times or null. The result is the frame of the chart: its box and the range of its times, by which a
// pointer finds a time.

import { reader, thinned, valueAt } from "./chart_series.js";
import { shownUnit } from "./units.js";

const EDGES = { left: 58, right: 12, top: 24, bottom: 22 };

export function paintChart(pen, sheet, x0, w, h) {
  const box = { x: x0 + EDGES.left, y: EDGES.top, w: w - EDGES.left - EDGES.right, h: h - EDGES.top - EDGES.bottom };
  const times = timesOf(sheet.shown);
  const scales = sheet.chart.plane ? planeScales(sheet, box) : timeScales(sheet, box, times);
  paintAxes(pen, sheet, box, scales);
  pen.clip(box.x, box.y - 2, box.w, box.h + 4, () => {
    for (const { series, color } of sheet.shown)
      paintSeries(pen, series, { color, width: sheet.stroke }, scales, box.w);
  });
  for (const t of sheet.chart.along ? [] : [sheet.now, sheet.hover]) {
    if (t === null || t < times.t0 - 1e-9 || t > times.t1 + 1e-9) continue;
    const { px, py } = scales;
    if (!sheet.chart.plane)
      pen.path([px(t), box.y, px(t), box.y + box.h], {
        color: t === sheet.now ? sheet.ink : sheet.faint,
        width: 1,
        dash: t === sheet.now ? [] : [2, 2],
      });
    for (const { series, color } of sheet.shown) {
      const x = series.upper ? null : valueAt(series, t);
      if (x !== null) pen.dot(series.x ? px(valueAt(series, t, (k) => series.x[k])) : px(t), py(x), 2.8, color);
    }
  }
  return { ...box, ...times, left: x0, wide: w, plane: Boolean(sheet.chart.plane || sheet.chart.along) };
}

function paintSeries(pen, series, { color, width }, { px, py }, wide) {
  if (series.upper) {
    const { t, n, at } = reader(series);
    const order = [...Array(n).keys()];
    const edge = [
      ...order.flatMap((k) => [px(t[k]), py(series.upper[k])]),
      ...order.reverse().flatMap((k) => [px(t[k]), py(at(k))]),
    ];
    if (n > 1) pen.path(edge, { fill: color, alpha: series.alpha ?? 0.18 });
    return;
  }
  const points = series.x
    ? Array.from({ length: reader(series).n }, (_, k) => [px(series.x[k]), py(reader(series).at(k))]).flat()
    : thinned(series, px, py, wide);
  pen.path(points, { color, width, dash: series.dashed ? [5, 3] : [] });
}

// Times of all shown series together.
function timesOf(shown) {
  let [t0, t1] = [Infinity, -Infinity];
  for (const { series } of shown) {
    const { t, n } = reader(series);
    if (n) [t0, t1] = [Math.min(t0, t[0]), Math.max(t1, t[n - 1])];
  }
  if (!(t1 >= t0)) [t0, t1] = [0, 1];
  return { t0, t1: t1 === t0 ? t0 + 1 : t1 };
}

// The least and the largest of the numbers of all shown series, with some room. Less than `floor` is drawn flat.
export function rangeOf(shown, read, floor = 0) {
  let [low, high] = [Infinity, -Infinity];
  for (const { series } of shown) {
    const { n } = reader(series);
    for (const at of read(series)) {
      for (let k = 0; k < n; k++) {
        const x = at(k);
        if (x < low) low = x;
        if (x > high) high = x;
      }
    }
  }
  if (!(high >= low)) [low, high] = [0, 1];
  // Rounding errors of a quantity that stays zero or constant are no curve.
  const size = Math.max(Math.abs(low), Math.abs(high));
  const isFlat = high - low <= Math.max(1e-12, 1e-12 * size, floor);
  const pad = isFlat ? Math.max(floor ? 10 * floor : 1e-3, 0.1 * size) : 0.06 * (high - low);
  return { low: low - pad, high: high + pad };
}

const valuesOf = (series) => [reader(series).at, ...(series.upper ? [(k) => series.upper[k]] : [])];

// Values over time; an `axis` { name, unit, first, rate } has first + rate t instead, such as the angle of a drive.
function timeScales({ chart, shown }, box, { t0, t1 }) {
  const { low, high } = rangeOf(shown, valuesOf, chart.floor);
  const { name = "t", unit = "s", first = 0, rate = 1 } = chart.axis || {};
  return {
    px: (t) => box.x + ((t - t0) / (t1 - t0)) * box.w,
    py: (x) => box.y + box.h - ((x - low) / (high - low)) * box.h,
    across: {
      name,
      unit,
      range: [first + rate * t0, first + rate * t1],
      at: (x) => box.x + (((x - first) / rate - t0) / (t1 - t0)) * box.w,
    },
    along: [low, high],
  };
}

// A curve in a plane, both axes to the same scale unless the chart is `stretched`.
function planeScales({ chart, shown }, box) {
  const x = rangeOf(shown, (series) => [(k) => series.x[k]]);
  const y = rangeOf(shown, valuesOf);
  const own = [(x.high - x.low) / box.w, (y.high - y.low) / box.h];
  const [perX, perY] = chart.stretched ? own : [Math.max(...own), Math.max(...own)];
  const [mx, my] = [(x.low + x.high) / 2, (y.low + y.high) / 2];
  const px = (value) => box.x + box.w / 2 + (value - mx) / perX;
  return {
    px,
    py: (value) => box.y + box.h / 2 - (value - my) / perY,
    across: { ...chart.axis, range: [mx - (perX * box.w) / 2, mx + (perX * box.w) / 2], at: px },
    along: [my - (perY * box.h) / 2, my + (perY * box.h) / 2],
  };
}

function paintAxes(pen, { chart, units, ink, faint, line, font, size }, box, { py, across, along }) {
  const text = { color: faint, font, size };
  const own = shownUnit(chart.unit, units);
  const other = shownUnit(across.unit, units);
  for (const x of ticks(along[0] * own.factor, along[1] * own.factor, Math.max(2, Math.floor(box.h / 34)))) {
    pen.path([box.x, py(x / own.factor), box.x + box.w, py(x / own.factor)], {
      color: line,
      width: Math.abs(x) < 1e-12 ? 1.4 : 0.7,
    });
    pen.text(box.x - 6, py(x / own.factor) + 0.35 * size, tickText(x), { ...text, align: "right" });
  }
  const range = across.range.map((x) => x * other.factor);
  for (const x of ticks(
    Math.min(...range),
    Math.max(...range),
    Math.max(2, Math.floor(box.w / 80)),
    other.unit === "deg",
  )) {
    const at = across.at(x / other.factor);
    pen.path([at, box.y + box.h, at, box.y + box.h + 4], { color: faint });
    pen.text(at, box.y + box.h + 15, tickText(x), { ...text, align: "center" });
  }
  const withUnit = (name, unit) => `${name}${unit ? ` [${unit}]` : ""}`;
  pen.text(box.x, 14, withUnit([chart.title, chart.axis?.other].filter(Boolean).join(": "), own.unit), {
    ...text,
    color: ink,
    weight: 600,
  });
  pen.text(box.x + box.w, 14, withUnit(across.name, other.unit), { ...text, align: "right" });
}

function ticks(low, high, count, degrees = false) {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const steps =
    degrees && rough > 10 && rough <= 180 ? [15, 30, 45, 90, 180] : [0.5, 1, 2, 5, 10].map((k) => k * power);
  const at = steps.findIndex((s) => s >= rough * 0.999);
  const marks = (step) => {
    const out = [];
    for (let x = Math.ceil(low / step - 1e-9) * step; x <= high + 1e-9 * step; x += step)
      out.push(Math.abs(x) < 1e-9 * step ? 0 : x);
    return out;
  };
  const out = marks(steps[at]);
  return out.length < 3 && at > 0 ? marks(steps[at - 1]) : out; // a single number at an axis gives no scale
}

const tickText = (x) =>
  x !== 0 && (Math.abs(x) >= 1e5 || Math.abs(x) < 1e-3) ? x.toExponential(1) : String(Number(x.toPrecision(6)));
