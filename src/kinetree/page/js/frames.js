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

/**
 * Long work in slices of some milliseconds, between which the browser draws and answers: `work` is a generator that
 * yields often. done(result) follows its end, step() each slice. Returns the function that gives it up.
 * @template Result
 * @param {Generator<any, Result>} work
 * @param {{ patience?: number, step?: () => void, done?: (result: Result) => any }} [options]
 */
export function inSlices(work, { patience = 12, step = () => {}, done = (_result) => {} } = {}) {
  let given = false;
  soon(function slice() {
    if (given) return;
    const until = performance.now() + patience;
    let state = work.next();
    while (!state.done && performance.now() < until) state = work.next();
    if (state.done) return done(/** @type {Result} */ (state.value));
    step();
    soon(slice);
  });
  return () => {
    given = true;
  };
}

// Run a task after those that wait: a message is not delayed, as timers are, and does not wait for a frame.
const channel = new MessageChannel();
const tasks = [];
channel.port1.onmessage = () => tasks.shift()();
export function soon(task) {
  tasks.push(task);
  channel.port2.postMessage(0);
}
