// The doctor of loops in the page: what holds, what is free, what is singular, in plain words, each with the joints and loops
// that it concerns, so that the stage can mark them.

import { closeExactly, freedoms, unitsOf } from "./loop_rates.js";
import { seeded } from "./random_numbers.js";
import { dot } from "./singular_values.js";
import { short } from "./units.js";

const NEAR = 0.1; // of the usual hold of the loops: a position with less is nearly singular
const STILL = 1e-7; // the share in a motion below which a joint stands still
const NEIGHBORS = 8;
const AWAY = 0.35; // [rad, sizes of the mechanism] to the neighbors
const LENGTH = 0.15; // [rad, sizes of the mechanism] of the step by which a motion is found to go on or to end

const listed = (names) => (names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names[names.length - 1]}`);
const counted = (n, one, many = `${one}s`) => `${n} ${n === 1 ? one : many}`;

// Rank and weakest hold at closed positions around one, for comparison; and whether a motion goes on from it.
export function surroundings(app, q) {
  const { columns } = unitsOf(app);
  const random = seeded(11);
  const out = { rank: 0, hold: 0, rows: null, moves: goesOn(app, q, random) };
  for (let k = 0; k < NEIGHBORS; k++) {
    const { motions } = freedoms(app, q);
    const way = new Float64Array(app.model.nv);
    for (const v of motions) {
      const share = (2 * random() - 1) * AWAY;
      for (let i = 0; i < way.length; i++) way[i] += share * v[i] * columns[i];
    }
    const made = closeExactly(app, app.kernel.integrate(q, way));
    if (!made.closed) continue;
    const { J, svd, rank, rows } = freedoms(app, made.q);
    if (rank > out.rank) Object.assign(out, { rank, hold: 0 });
    if (rank === out.rank) out.hold = Math.max(out.hold, svd.values[rank - 1] ?? 0);
    const sizes = rows.map((row, i) => row * Math.hypot(...columns.map((c, j) => c * J[i * columns.length + j])));
    out.rows = out.rows ? out.rows.map((x, i) => Math.max(x, sizes[i])) : sizes;
  }
  return out;
}

// Whether another closed position is near. The joint that moves most is held, so that closing cannot lead back: loops that just
// reach each other allow velocities, but no motion (as analysis/loops/closed_positions.py).
function goesOn(app, q, random) {
  const { columns, motions } = freedoms(app, q);
  return motions.length > 0 && [LENGTH, LENGTH, LENGTH, LENGTH / 5, LENGTH / 5, LENGTH / 5].some((length) => {
    const way = new Float64Array(app.model.nv);
    for (const v of motions) {
      const share = 2 * random() - 1;
      v.forEach((x, i) => { way[i] += share * x; });
    }
    const most = way.reduce((best, x, i) => (Math.abs(x) > Math.abs(way[best]) ? i : best), 0);
    const moved = app.kernel.integrate(q, way.map((x, i) => (x * columns[i] * length) / Math.abs(way[most])));
    return closeExactly(app, moved, [most]).closed;
  });
}

// [{ level: "wrong" | "caution" | "note", title, text, loops: [index], velocities: [index] }], the worst first.
export function findings(app, q, { drive, leads, usual }) {
  const { model, kernel, data } = app;
  const here = freedoms(app, q);
  const gap = kernel.gap(q);
  const names = (indices) => listed(indices.map((k) => model.velocities[k].label));
  const out = [];
  if (gap > 1e-8 * data.scene.size) {
    const loops = model.loops.map((_, k) => k).filter((k) => loopGap(app, q, k) > 1e-8 * data.scene.size);
    out.push({ level: "wrong", title: "The loops are open", text: `They miss each other by ${short(gap)} m or rad. Close them, or change a length back.`, loops, velocities: [] });
    return out;
  }
  if (here.mobility === 0) {
    out.push({ level: "wrong", title: "The mechanism is locked", text: `Its loops leave none of the ${model.nv} degrees of freedom of the joints.`, loops: model.loops.map((_, k) => k), velocities: [] });
  } else if (!usual.moves) {
    const moving = movers(here);
    out.push({ level: "wrong", title: "The mechanism only shakes", text: `At this instant ${names(moving)} could move, but no motion goes on from here: the loops just reach each other. Make a length longer or shorter, or leave out a loop.`, loops: model.loops.map((_, k) => k), velocities: moving });
  } else {
    out.push({ level: "note", title: counted(here.mobility, "freedom"), text: `${names(leads)} ${leads.length === 1 ? "determines" : "determine"} all other joints.`, loops: [], velocities: leads });
  }
  if (usual.moves && usual.rank > here.rank) {
    const moving = movers(here);
    out.push({ level: "caution", title: "The position is singular", text: `Here the loops leave ${counted(here.mobility, "freedom")}, nearby ${model.nv - usual.rank}: branches of motion meet, and forces in the loops are not unique.`, loops: [], velocities: moving });
  } else if (usual.moves && here.rank && here.svd.values[here.rank - 1] < NEAR * usual.hold) {
    const weak = largest(here.svd.right[here.rank - 1]);
    out.push({ level: "caution", title: "The position is nearly singular", text: `The loops hardly hold ${names(weak)} here: forces are large, and small errors of length move much.`, loops: [], velocities: weak });
  }
  const still = here.mobility && usual.moves && usual.rank === here.rank ? [...model.velocities.keys()].filter((k) => here.motions.every((v) => Math.abs(v[k]) < STILL)) : [];
  if (still.length) {
    out.push({ level: still.includes(drive) ? "caution" : "note", title: `${names(still)} ${still.length === 1 ? "stands" : "stand"} still`, text: "At this instant the other joints move. For a drive there it is a dead position: its torque moves nothing.", loops: [], velocities: still });
  } else if (here.mobility === 1 && usual.moves && drive !== null && Math.abs(here.motions[0][drive]) < 0.02) {
    out.push({ level: "caution", title: "The drive is near a dead position", text: `A small motion of ${names([drive])} moves the others much, and its torque can hardly move them.`, loops: [], velocities: [drive] });
  }
  out.push(...redundant(app, here, usual));
  return out.sort((a, b) => LEVELS.indexOf(a.level) - LEVELS.indexOf(b.level));
}

const LEVELS = ["wrong", "caution", "note"];

// Equations that hold by themselves, as those out of the plane of a planar mechanism, and those that follow from others.
function redundant(app, here, usual) {
  const { model } = app;
  const out = [];
  const most = Math.max(...(usual.rows || [0]));
  const idle = model.equations.map((_, i) => i).filter((i) => usual.rows && usual.rows[i] <= 1e-9 * most);
  const more = model.equations.length - idle.length - Math.max(usual.rank, here.rank);
  const of = (indices) => [...new Set(indices.map((i) => model.equations[i].name))];
  const loopsOf = (indices) => of(indices).map((name) => model.loops.findIndex((x) => x.name === name)).filter((k) => k >= 0);
  if (idle.length) {
    const labels = listed([...new Set(idle.map((i) => model.equations[i].label))]);
    out.push({ level: "note", title: `${counted(idle.length, "equation")} ${idle.length === 1 ? "holds by itself" : "hold by themselves"}`, text: `${listed(of(idle))}: ${labels}. Motions are not affected; forces in these directions cannot be computed and are taken as small as they can be.`, loops: [], velocities: [] });
  }
  if (more > 0) {
    const involved = dependent(here, model, idle);
    out.push({ level: "caution", title: "Over-constrained", text: `${counted(more, "equation")} of ${listed(of(involved))} ${more === 1 ? "follows" : "follow"} from others. Motions are right, but how a load is shared between these loops is not unique.`, loops: loopsOf(involved), velocities: [] });
  }
  return out;
}

// Equations that take part in a dependence: left null vectors of J.
function dependent({ J, rows, columns, rank, svd }, model, idle) {
  const { nv } = model;
  return model.equations.map((_, i) => i).filter((i) => {
    if (idle.includes(i)) return false;
    const row = Float64Array.from({ length: nv }, (_, k) => rows[i] * columns[k] * J[i * nv + k]);
    const inside = svd.left.slice(0, rank).reduce((sum, u) => sum + u[i] ** 2, 0); // the part of the equation that stands alone
    return dot(row, row) > 0 && inside < 1 - 1e-9;
  });
}

const largest = (v) => [...v.keys()].filter((k) => Math.abs(v[k]) > 0.3 * Math.max(...v.map(Math.abs))).sort((i, j) => Math.abs(v[j]) - Math.abs(v[i]));
const movers = ({ motions }) => largest(motions.reduce((sum, v) => sum.map((x, k) => x + v[k] ** 2), new Float64Array(motions[0].length)));

// The largest residual of one loop.
export function loopGap({ model, kernel }, q, k) {
  const residual = kernel.call("closure_residual", { q });
  return Math.max(0, ...model.equations.map((e, i) => (e.name === model.loops[k].name ? Math.abs(residual[i]) : 0)));
}
