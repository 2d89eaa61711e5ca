// Presses keys in the player of a replay page, on elements that are stubs, and prints what each of them did as JSON.
import { readFileSync } from "node:fs";
import vm from "node:vm";

const listeners = {};
const elements = {};
const element = (id, tagName = "MAIN", type = "") => (elements[id] ??= {
  tagName, type, value: "1", checked: false, dataset: {}, clientHeight: 1,
  classList: { toggle() {}, add() {}, remove() {} }, setAttribute() {}, addEventListener() {},
  textContent: JSON.stringify({ frames: 201, step: 0.01, start: 0, follows: false, camera: { target: [0, 0, 0] } }),
});
for (const [id, tag, type] of [["play", "BUTTON"], ["speed", "SELECT"], ["time", "INPUT", "range"], ["loop", "INPUT", "checkbox"]]) {
  element(id, tag, type);
}
const body = { tagName: "BODY", dataset: {} };
const context = vm.createContext({
  document: { getElementById: (id) => element(id), body, addEventListener: (name, f) => (listeners[name] = f) },
  Stage: class { middle() { return [0, 0, 0]; } draw() {} },
  add: (a, b) => a.map((x, k) => x + b[k]), performance: { now: () => 0 }, requestAnimationFrame() {},
  ResizeObserver: class { observe() {} }, location: { hash: "#t=1.0" }, matchMedia: () => ({ matches: true }),
});
const state = () => vm.runInContext("({ frame, playing })", context);
vm.runInContext(readFileSync(process.argv[2], "utf8"), context);

const done = {};
for (const [id, target] of Object.entries({ body, play: elements.play, time: elements.time, loop: elements.loop, speed: elements.speed })) {
  for (const key of ["ArrowLeft", "ArrowRight", " "]) {
    vm.runInContext("frame = 100; playing = false", context);
    let taken = false;
    listeners.keydown({ key, target, preventDefault: () => { taken = true; } });
    done[`${id} ${key}`] = { ...state(), taken };
  }
}
console.log(JSON.stringify(done));
