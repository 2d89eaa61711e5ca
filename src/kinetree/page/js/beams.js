// Beams as they bend: tubes with the strain as color, exaggerated where the reader wants it, and curves of moments and
// shear along them. All of it follows from the modal coordinates, by the tables of page/data.py.

import { el, toggle } from "./elements.js";
import { rodMatrix, transform } from "./vectors.js";

const SHADES = [
  [0, 0.13, 0.31],
  [0.26, 0.31, 0.42],
  [0.49, 0.49, 0.47],
  [0.74, 0.68, 0.43],
  [1, 0.91, 0.27],
]; // from no strain to the largest; also for readers who see no red or green
const MOST = 3; // decades of exaggeration

/**
 * A beam of page/data.py: arrays [modes, places, 2] along y and z, `stretch` [modes, places].
 * @typedef {{ name: string, body: number, parts: number[], q: number, modes: number, x: Float64Array, round?: boolean,
 *   deflection: Float32Array, moment: Float32Array, shear: Float32Array, bend?: Float32Array, stretch?: Float32Array
 * }} Beam
 */

// The sum of a table over the modal coordinates of a beam: [places * width].
export function summed({ q: first, modes }, table, q) {
  const size = table.length / modes;
  const out = new Float64Array(size);
  for (let k = 0; k < modes; k++) for (let j = 0; j < size; j++) out[j] += q[first + k] * table[k * size + j];
  return out;
}

// The largest strain of the cross section at every place.
export function strains(beam, q) {
  const [bend, stretch] = [summed(beam, beam.bend, q), summed(beam, beam.stretch, q)];
  return stretch.map((x, k) => {
    const [y, z] = [Math.abs(bend[2 * k]), Math.abs(bend[2 * k + 1])];
    return (beam.round ? Math.hypot(y, z) : y + z) + Math.abs(x);
  });
}

// The color of a part from 0 to 1.
export function shade(part) {
  const at = Math.min(1, Math.max(0, part)) * (SHADES.length - 1);
  const k = Math.min(SHADES.length - 2, Math.floor(at));
  return SHADES[k].map((c, i) => c + (at - k) * (SHADES[k + 1][i] - c));
}

// connectBeams(app, layout): from now on the page shows beams, if the mechanism has any.
export function connectBeams(app, layout) {
  /** @type {{ beams?: Beam[], scene: any }} */
  const { beams = [], scene } = app.data;
  const { store, stage, plots, kernel } = app;
  if (!beams.length) return;
  store.define("bending", { decades: 0, strain: true }, { link: true });
  const factor = () => 10 ** store.get("bending").decades;
  const radii = beams.map((beam) => {
    const own = scene.rods.filter((rod) => rod.a !== rod.b && [rod.a, rod.b].every((k) => beam.parts.includes(k)));
    for (const rod of own) rod.isBeam = true; // drawn by the tubes
    return own[0]?.radius ?? 0.008 * scene.size;
  });
  let scale = { of: null, most: 0 }; // the largest strain of a motion up to now

  app.shownPosition = (q) => {
    const by = factor();
    if (by === 1) return q;
    const out = Float64Array.from(q);
    for (const { q: first, modes } of beams) for (let k = first; k < first + modes; k++) out[k] *= by;
    return out;
  };
  app.isExaggerated = () => factor() !== 1;
  app.beamLayer = () => {
    const [q, motion, matrices] = [store.get("q"), store.get("motion"), app.matricesNow()];
    const isColored = store.get("bending").strain;
    if (scale.of !== motion) scale = { of: motion, most: 0 };
    const found = beams.map((beam) => (beam.bend ? strains(beam, q) : null));
    for (const own of found) if (own) scale.most = Math.max(scale.most, ...own);
    legend.show(isColored && found.some(Boolean), scale.most);
    return { items: beams.flatMap((beam, b) => tubes(beam, b, matrices, isColored && found[b], q)) };
  };
  function tubes(beam, b, matrices, strain, q) {
    const y = summed(beam, beam.deflection, q).map((x) => factor() * x);
    const hidden = store.get("hidden").has(beam.body);
    const points = Array.from(beam.x, (x, k) => transform(matrices[beam.body], [x, y[2 * k], y[2 * k + 1]]));
    return points
      .slice(hidden ? points.length : 1)
      .map((to, k) => ({
        ...stage.solid("rod"),
        matrix: rodMatrix(points[k], to, stage.view.unit * radii[b]),
        body: beam.body,
        color: strain ? shade((strain[k] + strain[k + 1]) / (2 * scale.most || 1)) : plain(app.model.bodies[beam.body]),
      }));
  }

  const legend = buildLegend(stage.host);
  plots.more = () => beamCharts(beams, () => store.get("q"));
  layout.player.querySelector(".toggles")?.append(...controls(store, Boolean(kernel), factor));
  store.on(["bending"], () => stage.refresh());
  store.on(["q"], () => plots.refresh());
}

const plain = ({ color }) => [1, 3, 5].map((k) => parseInt(color.slice(k, k + 2), 16) / 255);

// The slider of the exaggeration, where the page computes poses, and the toggle of the colors.
function controls(store, computes, factor) {
  const change = (changes) => store.set({ bending: { ...store.get("bending"), ...changes } });
  const output = el("output", { class: "times" });
  const slider = el("input", {
    type: "range",
    min: "0",
    max: String(MOST),
    step: "0.05",
    "aria-label": "exaggeration",
  });
  const colors = toggle("strain", { title: "strain of beams as color", change: (on) => change({ strain: on }) });
  slider.addEventListener("input", () => change({ decades: Number(slider.value) }));
  const refresh = () => {
    slider.value = String(store.get("bending").decades);
    output.textContent = `${Number(factor().toPrecision(2))} x`;
    slider.setAttribute("aria-valuetext", output.textContent);
    colors.set(store.get("bending").strain);
  };
  store.on(["bending"], refresh);
  refresh();
  const label = el("label", { title: "bending of beams is drawn so many times larger" }, "bending", slider, output);
  return computes ? [colors, label] : [colors];
}

// The scale of the colors, in the corner of the stage.
function buildLegend(host) {
  const bar = el("canvas", { width: 120, height: 1, "aria-hidden": "true" });
  const pen = bar.getContext("2d", { willReadFrequently: true });
  for (let x = 0; x < 120; x++) {
    pen.fillStyle = `rgb(${shade(x / 119).map((c) => Math.round(255 * c))})`;
    pen.fillRect(x, 0, 1, 1);
  }
  const most = el("output", {});
  const box = el("div", { class: "strains", hidden: true }, "strain 0", bar, most);
  host.append(box);
  return {
    show(on, value) {
      box.hidden = !on;
      most.textContent = `${Number((1e6 * value).toPrecision(3))} \u00b5m/m`;
    },
  };
}

// Moment and shear along all beams at the present position: curves over the place instead of the time.
function beamCharts(beams, position) {
  const chart = (title, unit, field) => ({
    title,
    unit,
    along: true,
    axis: { name: "x", unit: "m" },
    series: beams.flatMap((beam) =>
      ["y", "z"].flatMap((axis, c) =>
        beam[field].some((x, k) => k % 2 === c && x !== 0)
          ? [
              {
                name: `${beam.name} ${axis}`,
                t: beam.x,
                stride: 2,
                offset: c,
                get values() {
                  return summed(beam, beam[field], position());
                },
              },
            ]
          : [],
      ),
    ),
  });
  return [chart("bending moment", "N m", "moment"), chart("shear", "N", "shear")].filter((c) => c.series.length);
}
