// Frames and ends of loops, which follow the free parameters of a mechanism, and with them the drawing.

// followParameters(app): from now on, a change of parameters moves them.
export function followParameters(app) {
  const { kernel, model, store } = app;
  if (!kernel?.has("placements")) return;
  const follow = () => {
    const found = kernel.call("placements", {});
    const { frames = [], ends = [] } = found.length === undefined ? found : { [model.frames.length ? "frames" : "ends"]: found };
    model.frames.forEach((frame, k) => { frame.pose = Array.from(frames.subarray(16 * k, 16 * k + 16)); });
    model.loops.forEach((loop, k) => {
      loop.pose_a = Array.from(ends.subarray(32 * k, 32 * k + 16));
      loop.pose_b = Array.from(ends.subarray(32 * k + 16, 32 * k + 32));
    });
    app.followDrawing();
  };
  follow();
  store.on(["parameters"], follow);
}
