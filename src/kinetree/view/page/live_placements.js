// Frames, ends of loops, and the rods and trails drawn at them, which follow the free parameters of a mechanism.

const SAME = 1e-12; // [m] points that are nearer were the same number in the model

// followParameters(app): from now on, a change of parameters moves them.
export function followParameters(app) {
  const { kernel, model, data, store } = app;
  if (!kernel?.has("placements")) return;
  const places = placesOf(model);
  const drawn = [
    ...data.scene.rods.flatMap((rod) => [[rod.a, rod.pa, (p) => { rod.pa = p; }], [rod.b, rod.pb, (p) => { rod.pb = p; }]]),
    ...data.scene.tips.map((tip) => [tip[0], tip[1], (p) => { tip[1] = p; }]),
  ].flatMap(([body, point, move]) => {
    const place = places.find((one) => one.body === body && Math.hypot(...one.at().map((x, k) => x - point[k])) < SAME);
    return place && Math.hypot(...point) > SAME ? [() => move(place.at())] : [];
  });
  const follow = () => {
    const found = kernel.call("placements", {});
    const { frames = [], ends = [] } = found.length === undefined ? found : { [model.frames.length ? "frames" : "ends"]: found };
    model.frames.forEach((frame, k) => { frame.pose = Array.from(frames.subarray(16 * k, 16 * k + 16)); });
    model.loops.forEach((loop, k) => {
      loop.pose_a = Array.from(ends.subarray(32 * k, 32 * k + 16));
      loop.pose_b = Array.from(ends.subarray(32 * k + 16, 32 * k + 32));
    });
    for (const move of drawn) move();
  };
  follow();
  store.on(["parameters"], follow);
}

// Placements with their bodies; at() is the origin now.
function placesOf(model) {
  const origin = (pose) => [pose[3], pose[7], pose[11]];
  return [
    ...model.frames.map((frame) => ({ body: frame.body, at: () => origin(frame.pose) })),
    ...model.loops.flatMap((loop) => [{ body: loop.a, at: () => origin(loop.pose_a) }, { body: loop.b, at: () => origin(loop.pose_b) }]),
  ];
}
