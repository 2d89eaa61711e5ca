// Time and view: the reader's input.

const byId = (id) => document.getElementById(id);
const data = JSON.parse(byId("data").textContent);
const stage = new Stage(data, byId("solid"), byId("overlay"));
const last = Math.max(0, data.frames - 1);
const main = byId("stage");
let frame = 0;
let playing = false;
let before = 0;
let view = firstView();
const BOXES = ["trails", "names", "axes", "reactions", "drives", "wrenches", "values"];
const watchers = []; // functions of the time that is shown

function firstView() {
  const { azimuth, elevation, distance, target } = data.camera;
  return { azimuth, elevation, distance, target: [...target] };
}

function shown() {
  return Object.fromEntries(BOXES.map((id) => [id, byId(id).checked]));
}

function draw() {
  const seen = byId("follow").checked ? { ...view, target: add(stage.middle(frame), view.target) } : view;
  stage.draw(frame, seen, shown());
  const end = data.start + last * data.step;
  byId("time").value = last ? frame / last : 0;
  const now = data.start + frame * data.step;
  const digits = end - data.start < 2 ? 3 : 2;
  byId("clock").textContent = `${now.toFixed(digits)} / ${end.toFixed(digits)} s`;
  for (const watch of watchers) watch(now);
  document.body.dataset.ready = stage.isPlain ? "plain" : "webgl";
}

let asked = false;
function refresh() {
  if (asked) return;
  asked = true;
  requestAnimationFrame((now) => {
    asked = false;
    if (playing) {
      frame += data.step ? ((now - before) / 1000) * Number(byId("speed").value) / data.step : 0;
      before = now;
      if (frame >= last) {
        if (byId("loop").checked && last > 0) frame %= last;
        else setPlaying(false, last);
      }
      refresh();
    }
    draw();
  });
}

function setPlaying(on, at = frame) {
  playing = on && last > 0;
  frame = playing && at >= last ? 0 : at;
  before = performance.now();
  byId("play").classList.toggle("on", playing);
  byId("play").setAttribute("aria-label", playing ? "pause" : "play");
  refresh();
}

function seekTime(t) {
  setPlaying(false, data.step ? Math.min(last, Math.max(0, (t - data.start) / data.step)) : 0);
}

function seek(to) {
  frame = Math.min(last, Math.max(0, to));
  before = performance.now();
  refresh();
}

// The target is a point of the ground or, if the camera follows, an offset from the center of the bodies.
function setFollow(on) {
  const middle = stage.middle(frame);
  view.target = on ? sub(view.target, middle) : add(view.target, middle);
  refresh();
}

function reset() {
  view = firstView();
  byId("follow").checked = data.follows;
  if (data.follows) view.target = [0, 0, 0];
  refresh();
}

function shift(dx, dy) {
  const { right, above } = cameraMatrices({ ...data.camera, ...view }, 1);
  const k = (2 * view.distance * Math.tan(data.camera.field / 2)) / main.clientHeight;
  view.target = add(view.target, add(scale(-k * dx, right), scale(k * dy, above)));
}

function zoom(factor) {
  view.distance = Math.min(100 * data.camera.distance, Math.max(0.02 * data.camera.distance, view.distance * factor));
  refresh();
}

const pointers = new Map();
main.addEventListener("pointerdown", (event) => {
  main.setPointerCapture(event.pointerId);
  pointers.set(event.pointerId, [event.clientX, event.clientY]);
  main.classList.add("held");
});
main.addEventListener("pointermove", (event) => {
  const from = pointers.get(event.pointerId);
  if (!from) return;
  const to = [event.clientX, event.clientY];
  const [dx, dy] = [to[0] - from[0], to[1] - from[1]];
  if (pointers.size === 2) { // two fingers: zoom and shift
    const other = [...pointers].find(([id]) => id !== event.pointerId)[1];
    const distance = (p) => Math.hypot(p[0] - other[0], p[1] - other[1]) || 1;
    zoom(distance(from) / distance(to));
    shift(dx / 2, dy / 2);
  } else if (event.shiftKey || event.buttons === 2 || event.buttons === 4) {
    shift(dx, dy);
  } else {
    view.azimuth -= 0.008 * dx;
    view.elevation = Math.min(1.55, Math.max(-1.55, view.elevation + 0.008 * dy));
  }
  pointers.set(event.pointerId, to);
  refresh();
});
for (const end of ["pointerup", "pointercancel"]) {
  main.addEventListener(end, (event) => {
    pointers.delete(event.pointerId);
    if (!pointers.size) main.classList.remove("held");
  });
}
main.addEventListener("contextmenu", (event) => event.preventDefault());
main.addEventListener("dblclick", reset);
main.addEventListener("wheel", (event) => {
  if (data.embedded && document.activeElement !== main) return; // the wheel scrolls the page until the view is clicked
  event.preventDefault();
  zoom(Math.exp(0.0012 * Math.max(-200, Math.min(200, event.deltaY))));
}, { passive: false });
// A control with the focus keeps its own keys: a list the arrows, buttons and boxes the space bar.
function keepsKey(target, key) {
  const kind = target.tagName;
  if (kind === "SELECT") return true;
  return key === " " && (kind === "BUTTON" || (kind === "INPUT" && target.type === "checkbox"));
}
document.addEventListener("keydown", (event) => {
  if (data.embedded && !byId("player").contains(event.target)) return;
  if (event.ctrlKey || event.altKey || event.metaKey || keepsKey(event.target, event.key)) return;
  const step = Math.max(1, last / 100);
  const actions = { " ": () => setPlaying(!playing), ArrowLeft: () => seek(frame - step), ArrowRight: () => seek(frame + step) };
  if (actions[event.key]) {
    event.preventDefault();
    actions[event.key]();
  }
});
byId("play").addEventListener("click", () => setPlaying(!playing));
byId("time").addEventListener("input", () => seek(Number(byId("time").value) * last));
byId("reset").addEventListener("click", reset);
byId("follow").addEventListener("change", () => setFollow(byId("follow").checked));
for (const id of BOXES) byId(id).addEventListener("change", refresh);
new ResizeObserver(refresh).observe(main);

if (stage.isPlain) {
  byId("message").textContent = "WebGL is not available here: drawn without a graphics processor.";
  byId("message").hidden = false;
}
for (const group of new Set((data.arrows || []).map((arrow) => arrow.group))) {
  byId("arrows").hidden = byId(group).parentElement.hidden = false;
}
if (data.speed) byId("speed").value = data.speed;
reset();
const wanted = /[#&]t=(-?[0-9.]+)/.exec(location.hash);
if (wanted && data.step) seek((Number(wanted[1]) - data.start) / data.step);
else if (data.embedded) seekTime(data.at);
else if (!matchMedia("(prefers-reduced-motion: reduce)").matches) setPlaying(true);
draw();
