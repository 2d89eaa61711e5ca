// Frames, ends of loops and points of force elements, which follow the free parameters of a mechanism, and with them
// the drawing.

// followParameters(app): from now on, a change of parameters moves them.
export function followParameters(app) {
  const { kernel, model, store } = app;
  if (!kernel?.has("placements")) return;
  const follow = () => {
    const found = kernel.call("placements", {});
    const only = ["frames", "loops", "forces"].find((name) => model[name].length);
    const none = new Float64Array(0);
    const parts = { frames: none, loops: none, forces: none };
    const { frames, loops, forces } = Object.assign(parts, found.length === undefined ? found : { [only]: found });
    model.frames.forEach((frame, k) => {
      frame.pose = Array.from(frames.subarray(16 * k, 16 * k + 16));
    });
    model.loops.forEach((loop, k) => {
      loop.pose_a = Array.from(loops.subarray(32 * k, 32 * k + 16));
      loop.pose_b = Array.from(loops.subarray(32 * k + 16, 32 * k + 32));
    });
    model.forces.forEach((force, k) => {
      force.point_a = Array.from(forces.subarray(6 * k, 6 * k + 3));
      force.point_b = Array.from(forces.subarray(6 * k + 3, 6 * k + 6));
    });
    app.followDrawing();
  };
  follow();
  store.on(["parameters"], follow);
}
