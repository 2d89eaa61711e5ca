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

// Long work in slices of some milliseconds per frame, so that the page stays responsive: `work` is a generator that yields
// often. done(result) follows its end, step() each slice. Returns the function that gives it up.
export function inSlices(work, { patience = 12, step = () => {}, done = () => {} } = {}) {
  let given = false;
  const slice = () => {
    if (given) return;
    const until = performance.now() + patience;
    let state = work.next();
    while (!state.done && performance.now() < until) state = work.next();
    if (state.done) done(state.value);
    else {
      step();
      requestAnimationFrame(slice);
    }
  };
  requestAnimationFrame(slice);
  return () => { given = true; };
}
