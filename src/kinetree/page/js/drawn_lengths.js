// Rods, springs and ends of trails that follow the numbers of the model: their points are those of frames, centers of
// mass, loops and force elements.

const NEAR = 1e-12; // [m] equal points
const apart = (p, q) => Math.hypot(p[0] - q[0], p[1] - q[1], p[2] - q[2]);
const spot = (pose) => [pose[3], pose[7], pose[11]];
const color = (text) => [1, 3, 5].map((k) => parseInt(text.slice(k, k + 2), 16) / 255);

// Returns the function that moves all points to the present numbers of the model.
export function bindDrawing(scene, model) {
  const sources = (body) => [
    ...model.frames.filter((f) => f.body === body).map((f) => () => spot(f.pose)),
    ...model.loops.flatMap((x) =>
      ["a", "b"].filter((side) => x[side] === body).map((side) => () => spot(x[`pose_${side}`])),
    ),
    ...model.forces.flatMap((x) =>
      ["a", "b"].filter((side) => x[side] === body).map((side) => () => x[`point_${side}`]),
    ),
    ...(body < 0 ? [] : [() => model.bodies[body].com]),
  ];
  const bound = [];
  const bind = (body, point, move) => {
    if (apart(point, [0, 0, 0]) < NEAR) return;
    const source = sources(body).find((now) => apart(now(), point) < NEAR);
    if (source) bound.push(() => move([...source()]));
  };
  for (const rod of scene.rods) {
    if (rod.element >= 0) {
      // other points may be at the same place now, and follow other numbers
      bound.push(() => {
        [rod.pa, rod.pb] = [model.forces[rod.element].point_a, model.forces[rod.element].point_b];
      });
      continue;
    }
    bind(rod.a, rod.pa, (p) => {
      rod.pa = p;
    });
    bind(rod.b, rod.pb, (p) => {
      rod.pb = p;
    });
  }
  for (const tip of scene.tips)
    bind(tip[0], tip[1], (p) => {
      tip[1] = p;
    });
  const rods = scene.rods;
  const later = missingRods(scene, model);
  return () => {
    for (const move of bound) move();
    scene.rods = [...rods, ...later.map((make) => make()).filter(Boolean)];
  };
}

// Rods of no length at first, which are not drawn until a number gives them one: to frames of last bodies, and from the
// ground.
function missingRods(scene, model) {
  const radius = scene.rods.find((rod) => ["rod", "link"].includes(rod.solid))?.radius || 0.008 * scene.size;
  const parents = new Set(model.bodies.map((b) => b.parent));
  const frames = model.frames
    .filter((f) => f.body >= 0 && !parents.has(f.body) && apart(spot(f.pose), [0, 0, 0]) < NEAR)
    .map((f) => () => {
      const to = spot(f.pose);
      return apart(to, [0, 0, 0]) < NEAR
        ? null
        : {
            a: f.body,
            pa: [0, 0, 0],
            b: f.body,
            pb: to,
            radius,
            color: color(model.bodies[f.body].color),
            solid: "rod",
          };
    });
  const stands = model.joints.flatMap((joint, i) => {
    if (model.bodies[i].parent >= 0 || joint.floats || scene.rods.some((rod) => rod.a < 0 && rod.b === i)) return [];
    return [
      () =>
        apart(spot(joint.placement), [0, 0, 0]) < NEAR
          ? null
          : { a: -1, pa: [0, 0, 0], b: i, pb: [0, 0, 0], radius, color: color("#8a8f98"), solid: "rod" },
    ];
  });
  return [...frames, ...stands];
}
