// Charts of quantities and motions: [{ title, unit, series }], as plots.js shows them.

/**
 * A chart and its series, as plots.js shows them.
 * @typedef {{ name: string, t: ArrayLike<number>, count?: number, values: ArrayLike<number>, x?: ArrayLike<number>,
 *   stride?: number, offset?: number, upper?: ArrayLike<number>, color?: string, dashed?: boolean, tone?: number
 * }} Series
 * Charts of one `group` are shown together at first. One `along` a body has places instead of times. Curves of less
 * than `floor` are drawn flat: rounding, not motion.
 * @typedef {{ title: string, unit: string, series: Series[], plane?: boolean, stretched?: boolean, along?: boolean,
 *   group?: string,
 *   floor?: number,
 *   axis?: { name: string, unit: string, other?: string, first?: number, rate?: number } }} Chart
 */

/**
 * Columns of values [n] per label as charts of one unit each.
 * @param {string} title
 * @param {string[]} labels
 * @param {string[]} units
 * @param {ArrayLike<number>} t
 * @param {ArrayLike<number>[]} columns
 * @param {{ count?: number, dashed?: boolean, prefix?: string }} [options]
 */
export function charts(title, labels, units, t, columns, { count, dashed, prefix = "" } = {}) {
  return byUnit(title, units, (k) => ({ name: prefix + labels[k], t, values: columns[k], count, dashed }));
}

const WORDS = {
  // titles of the charts of a quantity whose entries have several units
  position: { rad: "angle", m: "displacement", 1: "quaternion" },
  velocity: { "rad/s": "angular velocity", "m/s": "velocity" },
  acceleration: { "rad/s^2": "angular acceleration", "m/s^2": "acceleration" },
  momentum: { "N m s": "angular momentum", "N s": "momentum" },
  torque: { "N m": "torque", N: "force" },
  "drive torque": { "N m": "drive torque", N: "drive force" },
};

// One chart per unit; make(k) returns the series of entry k.
export function byUnit(title, units, make) {
  const found = [...new Set(units)];
  return found.map((unit) => ({
    title: found.length === 1 ? title : WORDS[title]?.[unit] || `${title} ${unit}`,
    unit,
    group: title,
    series: units.flatMap((own, k) => (own === unit ? [make(k)] : [])),
  }));
}

// Charts of a motion, which may grow: positions, velocities and its further columns. Those of a `ghost` are dashed.
export function motionCharts(model, motion, ghost = null) {
  const groups = [
    ["position", model.coordinates, (m) => m.q, model.nq],
    ["velocity", model.velocities, (m) => m.qd, model.nv],
    ...motion.columns.map((column, c) => [
      column.name,
      column.labels.map((label, k) => ({ label, unit: column.units[k] })),
      (m, k) => m.columns[c]?.values[k] || [],
      0,
    ]),
  ];
  return groups.flatMap(([title, entries, values, stride]) =>
    byUnit(
      title,
      entries.map((e) => e.unit),
      (k) => k,
    ).map((chart) => {
      const series = (from, k, dashed) => ({
        name: dashed ? `${entries[k].label}, before` : entries[k].label,
        dashed,
        tone: chart.series.indexOf(k),
        stride: stride || 1,
        offset: stride ? k : 0,
        get t() {
          return from.t;
        },
        get count() {
          return from.count;
        },
        get values() {
          return values(from, k);
        },
      });
      return {
        ...chart,
        get floor() {
          return title === "momentum" ? ROUNDED * momentumScale(model, motion)[chart.unit] : 0;
        },
        series: [
          ...chart.series.map((k) => series(motion, k, false)),
          ...(ghost ? chart.series.map((k) => series(ghost, k, true)) : []),
        ],
      };
    }),
  );
}

const ROUNDED = 1e-3; // of the scale of a momentum: less of it is the error of the steps

// Momenta of all mass at the largest kinetic energy of a motion, about a point as far away as the mechanism is long.
function momentumScale(model, motion) {
  const kinetic = motion.columns.find((column) => column.name === "energy")?.values[0] || [];
  const most = kinetic.reduce((a, b) => Math.max(a, b), 0);
  const mass = model.bodies.reduce((sum, b) => sum + b.mass, 0);
  const reach = model.joints.reduce((sum, { placement: p }) => sum + Math.hypot(p[3], p[7], p[11]), 0);
  const wide = Math.max(reach, ...model.bodies.map((b) => Math.sqrt(Math.max(...b.moments) / (b.mass || 1))));
  const momentum = Math.sqrt(2 * mass * most);
  return { "N s": momentum, "N m s": momentum * wide };
}

const TITLES = {
  q: "position",
  qd: "velocity",
  tau: "torque",
  kinetic_energy: "energy",
  potential_energy: "energy",
  energy: "energy",
};
const ENERGIES = { kinetic_energy: "kinetic", potential_energy: "potential", energy: "total" };

// The columns of a recorded run as charts; energies share one.
export function recordedCharts(run) {
  const n = run.t.length;
  const found = [];
  for (const { name, labels, units, values } of run.columns) {
    const columns = labels.map((_, k) => values.subarray(k * n, (k + 1) * n));
    const energy = ENERGIES[name];
    const made = charts(TITLES[name], energy ? [energy] : labels, units, run.t, columns);
    const same = energy && found.find((chart) => chart.title === "energy");
    if (same) same.series.push(...made[0].series);
    else found.push(...made);
  }
  return found;
}
