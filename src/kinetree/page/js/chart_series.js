// Series of charts: { name, t, values, count?, stride?, offset?, x?, upper? }, read sample by sample (plots.js
// describes them).

// Times, number of samples, and the value of a sample.
export function reader(series) {
  const { t, values, stride = 1, offset = 0 } = series;
  return { t, n: series.count ?? t.length, at: (k) => values[k * stride + offset] };
}

// The sample at or before a time, and the part of the way to the next one; null outside of the series.
function placeOf(series, time) {
  const { t, n } = reader(series);
  if (!n || time < t[0] - 1e-9 || time > t[n - 1] + 1e-9) return null;
  let [low, high] = [0, n - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (t[middle] <= time + 1e-12) low = middle;
    else high = middle - 1;
  }
  const share = low + 1 < n ? (time - t[low]) / (t[low + 1] - t[low]) : 0;
  return { low, share: share <= 1e-9 ? 0 : share };
}

// The value of a series at a time, or that of `read`, such as its other coordinate.
export function valueAt(series, time, read = reader(series).at) {
  const place = placeOf(series, time);
  if (!place) return null;
  const { low, share } = place;
  return share ? read(low) + share * (read(low + 1) - read(low)) : read(low);
}

// Points of a curve; where there are many per pixel, the least and the largest of each.
export function thinned(series, px, py, wide) {
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

// All curves of all charts, in SI units and radians, numbers in full. Each group of times has its own column.
export function csvOf(charts) {
  const groups = new Map(); // times -> columns
  for (const chart of charts) {
    for (const series of chart.series) {
      const { t, n, at } = reader(series);
      if (!groups.has(t)) groups.set(t, { count: n, columns: [] });
      const { columns } = groups.get(t);
      const { axis } = chart;
      const angle = axis?.rate === undefined ? null : `${axis.name} [${axis.unit}]`;
      if (angle && !columns.some(([name]) => name === angle))
        columns.push([angle, (k) => axis.first + axis.rate * t[k]]);
      const add = (more, unit, read) => columns.push([`${chart.title}.${series.name}${more} [${unit}]`, read]);
      if (series.x) add(` ${chart.axis.name}`, chart.axis.unit, (k) => series.x[k]);
      add(series.x ? ` ${chart.axis.other}` : series.upper ? " low" : "", chart.unit, at);
      if (series.upper) add(" high", chart.unit, (k) => series.upper[k]);
    }
  }
  const isAlong = new Set(charts.filter((c) => c.along).flatMap((c) => c.series.map((series) => series.t)));
  const heads = [...groups].flatMap(([t, { columns }], g) => [
    isAlong.has(t) ? "x [m]" : g ? `t${g + 1} [s]` : "t [s]",
    ...columns.map(([name]) => quoted(name)),
  ]);
  const rows = Math.max(0, ...[...groups].map(([, { count }]) => count));
  const lines = [heads.join(",")];
  for (let k = 0; k < rows; k++) {
    lines.push(
      [...groups]
        .flatMap(([t, { count, columns }]) =>
          k < count ? [t[k], ...columns.map(([, at]) => at(k))] : ["", ...columns.map(() => "")],
        )
        .join(","),
    );
  }
  return `${lines.join("\n")}\n`;
}

function quoted(text) {
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
