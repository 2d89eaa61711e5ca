// The doctor of loops in the page: what holds, what is free, what is singular, in plain words, each with the joints and
// loops that it concerns, so that the stage can mark them.

import { freedoms } from "./loop_rates.js";
import { seeded } from "./random_numbers.js";
import { inner } from "./vectors.js";
import { short } from "./units.js";

const NEIGHBORS = 8;
const AWAY = 0.35; // [rad, sizes of the mechanism] to the neighbors
const LENGTHS = [1, 1, 1, 0.2, 0.2, 0.2]; // relative to a step, by which a motion is found to go on or to end

const listed = (names) =>
  names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names[names.length - 1]}`;
const counted = (n, one, many = `${one}s`) => `${n} ${n === 1 ? one : many}`;

// Rank and weakest hold at closed positions around one, for comparison; and whether a motion goes on from it.
export function surroundings(app, q) {
  const { columns } = app.kernel.units;
  const random = seeded(11);
  const out = { rank: 0, hold: 0, rows: null, moves: goesOn(app, q, random) };
  for (let k = 0; k < NEIGHBORS; k++) {
    const { motions } = freedoms(app, q);
    const way = new Float64Array(app.model.nv);
    for (const v of motions) {
      const share = (2 * random() - 1) * AWAY;
      for (let i = 0; i < way.length; i++) way[i] += share * v[i] * columns[i];
    }
    const made = app.kernel.close(app.kernel.integrate(q, way));
    if (!made.closed) continue;
    const { J, svd, rank, rows } = freedoms(app, made.q);
    if (rank > out.rank) Object.assign(out, { rank, hold: 0 });
    if (rank === out.rank) out.hold = Math.max(out.hold, svd.values[rank - 1] ?? 0);
    const sizes = rows.map((row, i) => row * Math.hypot(...columns.map((c, j) => c * J[i * columns.length + j])));
    out.rows = out.rows ? out.rows.map((x, i) => Math.max(x, sizes[i])) : sizes;
  }
  return out;
}

// Whether another closed position is near. The joint that moves most is held, so that closing cannot lead back: loops
// that just reach each other allow velocities, but no motion (as analysis/loops/closed_positions.py).
function goesOn(app, q, random) {
  const { columns, motions } = freedoms(app, q);
  return (
    motions.length > 0 &&
    LENGTHS.some((part) => {
      const length = part * app.kernel.thresholds.step;
      const way = new Float64Array(app.model.nv);
      for (const v of motions) {
        const share = 2 * random() - 1;
        v.forEach((x, i) => {
          way[i] += share * x;
        });
      }
      const most = way.reduce((best, x, i) => (Math.abs(x) > Math.abs(way[best]) ? i : best), 0);
      const moved = app.kernel.integrate(
        q,
        way.map((x, i) => (x * columns[i] * length) / Math.abs(way[most])),
      );
      return app.kernel.close(moved, { held: [most] }).closed;
    })
  );
}

// [{ level: "wrong" | "caution" | "note", title, text, loops: [index], velocities: [index] }], the worst first.
export function findings(app, q, { drive, leads, usual }) {
  const open = openLoops(app, q);
  if (open.length) return open;
  const here = freedoms(app, q);
  const found = [
    movement(app, here, usual, leads),
    ...singularity(app, here, usual),
    ...standing(app, here, usual, drive),
    ...redundant(app, here, usual),
  ];
  return found.sort((a, b) => LEVELS.indexOf(a.level) - LEVELS.indexOf(b.level));
}

const namesOf = ({ model }, indices) => listed(indices.map((k) => model.velocities[k].label));

// Loops that do not close.
function openLoops(app, q) {
  const { model, kernel, data } = app;
  const gap = kernel.gap(q);
  const least = kernel.thresholds.closed * data.scene.size;
  if (!(gap > least)) return [];
  return [
    {
      level: "wrong",
      title: "The loops are open",
      text: `They miss each other by ${short(gap)} m or rad. Close them, or change a length back.`,
      loops: [...model.loops.keys()].filter((k) => loopGap(app, q, k) > least),
      velocities: [],
    },
  ];
}

// What moves at all.
function movement(app, here, usual, leads) {
  const { model, kernel } = app;
  const loops = [...model.loops.keys()];
  if (here.mobility === 0)
    return {
      level: "wrong",
      title: "The mechanism is locked",
      text: `Its loops leave none of the ${model.nv} degrees of freedom of the joints.`,
      loops,
      velocities: [],
    };
  if (!usual.moves) {
    const moving = movers(here, kernel.thresholds);
    return {
      level: "wrong",
      title: "The mechanism only shakes",
      text:
        `At this instant ${namesOf(app, moving)} could move, but no motion goes on from here: the loops just reach ` +
        `each other. Make a length longer or shorter, or leave out a loop.`,
      loops,
      velocities: moving,
    };
  }
  return {
    level: "note",
    title: counted(here.mobility, "freedom"),
    text: `${namesOf(app, leads)} ${leads.length === 1 ? "determines" : "determine"} all other joints.`,
    loops: [],
    velocities: leads,
  };
}

// A position in which the loops hold less than nearby, or hardly anything in one direction.
function singularity(app, here, usual) {
  const { model, kernel } = app;
  const { thresholds: limits } = kernel;
  if (!usual.moves) return [];
  if (usual.rank > here.rank)
    return [
      {
        level: "caution",
        title: "The position is singular",
        text:
          `Here the loops leave ${counted(here.mobility, "freedom")}, nearby ${model.nv - usual.rank}: ` +
          `branches of motion meet, and forces in the loops are not unique.`,
        loops: [],
        velocities: movers(here, limits),
      },
    ];
  if (!here.rank || here.svd.values[here.rank - 1] >= limits.near * usual.hold) return [];
  const weak = largest(here.svd.right[here.rank - 1], limits);
  return [
    {
      level: "caution",
      title: "The position is nearly singular",
      text:
        `The loops hardly hold ${namesOf(app, weak)} here: forces are large, and small errors of length ` +
        "move much.",
      loops: [],
      velocities: weak,
    },
  ];
}

// Joints that stand still at this instant, and a drive that hardly moves.
function standing(app, here, usual, drive) {
  const { model, kernel } = app;
  const { thresholds: limits } = kernel;
  const still =
    here.mobility && usual.moves && usual.rank === here.rank
      ? [...model.velocities.keys()].filter((k) => here.motions.every((v) => Math.abs(v[k]) < limits.still))
      : [];
  if (still.length)
    return [
      {
        level: still.includes(drive) ? "caution" : "note",
        title: `${namesOf(app, still)} ${still.length === 1 ? "stands" : "stand"} still`,
        text:
          "At this instant the other joints move. For a drive there it is a dead position: its torque " +
          "moves nothing.",
        loops: [],
        velocities: still,
      },
    ];
  if (!(here.mobility === 1 && usual.moves && drive !== null)) return [];
  if (Math.abs(here.motions[0][drive]) >= limits.weakDrive) return [];
  return [
    {
      level: "caution",
      title: "The drive is near a dead position",
      text: `A small motion of ${namesOf(app, [drive])} moves the others much, and its torque can hardly move them.`,
      loops: [],
      velocities: [drive],
    },
  ];
}

const LEVELS = ["wrong", "caution", "note"];

// Equations that hold by themselves, as those out of the plane of a planar mechanism, and those that follow from
// others.
function redundant(app, here, usual) {
  const { model } = app;
  const { thresholds: limits } = app.kernel;
  const out = [];
  const most = Math.max(...(usual.rows || [0]));
  const idle = model.equations.map((_, i) => i).filter((i) => usual.rows && usual.rows[i] <= limits.idle * most);
  const more = model.equations.length - idle.length - Math.max(usual.rank, here.rank);
  const of = (indices) => [...new Set(indices.map((i) => model.equations[i].name))];
  const loopsOf = (indices) =>
    of(indices)
      .map((name) => model.loops.findIndex((x) => x.name === name))
      .filter((k) => k >= 0);
  if (idle.length) {
    const labels = listed([...new Set(idle.map((i) => model.equations[i].label))]);
    out.push({
      level: "note",
      title: `${counted(idle.length, "equation")} ${idle.length === 1 ? "holds by itself" : "hold by themselves"}`,
      text:
        `${listed(of(idle))}: ${labels}. Motions are not affected; forces in these directions cannot be ` +
        `computed and are taken as small as they can be.`,
      loops: [],
      velocities: [],
    });
  }
  if (more > 0) {
    const involved = dependent(here, model, idle, limits);
    out.push({
      level: "caution",
      title: "Over-constrained",
      text:
        `${counted(more, "equation")} of ${listed(of(involved))} ${more === 1 ? "follows" : "follow"} from ` +
        `others. Motions are right, but how a load is shared between these loops is not unique.`,
      loops: loopsOf(involved),
      velocities: [],
    });
  }
  return out;
}

// Equations that take part in a dependence: left null vectors of J.
function dependent({ J, rows, columns, rank, svd }, model, idle, limits) {
  const { nv } = model;
  return model.equations
    .map((_, i) => i)
    .filter((i) => {
      if (idle.includes(i)) return false;
      const row = Float64Array.from({ length: nv }, (_, k) => rows[i] * columns[k] * J[i * nv + k]);
      // the part of the equation that stands alone
      const inside = svd.left.slice(0, rank).reduce((sum, u) => sum + u[i] ** 2, 0);
      return inner(row, row) > 0 && inside < 1 - limits.share;
    });
}

const largest = (v, { large }) =>
  [...v.keys()]
    .filter((k) => Math.abs(v[k]) > large * Math.max(...v.map(Math.abs)))
    .sort((i, j) => Math.abs(v[j]) - Math.abs(v[i]));
const movers = ({ motions }, limits) =>
  largest(
    Float64Array.from(motions[0], (_, k) => Math.hypot(...motions.map((v) => v[k]))),
    limits,
  );

// The largest residual of one loop.
export function loopGap({ model, kernel }, q, k) {
  const residual = kernel.call("closure_residual", { q });
  return Math.max(0, ...model.equations.map((e, i) => (e.name === model.loops[k].name ? Math.abs(residual[i]) : 0)));
}
