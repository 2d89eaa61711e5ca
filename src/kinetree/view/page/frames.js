// Frames of the browser: work that is done once per frame, however often it is requested.

// oncePerFrame((now) => ...) returns the function that requests it; `now` is the time of the frame [ms].
export function oncePerFrame(work) {
  let waits = false;
  return () => {
    if (waits) return;
    waits = true;
    requestAnimationFrame((now) => {
      waits = false;
      work(now);
    });
  };
}
