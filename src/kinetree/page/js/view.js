// The view: a camera about a target, moved by pointer, wheel and keys. Drag to rotate, with shift or two fingers to
// move, wheel or pinch to zoom. A drag that begins on a handle or a body may belong to a panel instead: see `grabbers`.

import { add, cameraMatrices, cross, dot, rayThrough, scale, sub, unit } from "./vectors.js";

const STEEPEST = 1.5533; // 89 degrees: straight down, the direction to the right would be undefined
const CLICK = 4; // [px] a pointer that moves less has clicked

export class View {
  constructor(host, camera, { embedded = false, changed }) {
    this.host = host;
    this.camera = camera;
    this.embedded = embedded;
    this.changed = changed;
    this.azimuth = 0; // these four are set by `reset`
    this.elevation = 0;
    this.distance = 1;
    this.target = [0, 0, 0];
    this.isMoved = false; // whether the reader moved the camera, so that it follows the mechanism no more
    this.unit = 1; // the factor by which lengths grew since the start, set by the stage
    this.pick = null; // (camera, x, y) => the item at a point of the picture, set by the stage
    this.shown = null; // the matrices of the last picture, set by the stage
    this.first = {
      azimuth: camera.azimuth,
      elevation: camera.elevation,
      distance: camera.distance,
      target: [...camera.target],
    };
    this.grabbers = []; // functions of a grab { x, y, ray, eye, hit() }: a handler { move(grab), end() }, or null
    this.clicks = []; // functions of a grab
    this.pointers = new Map();
    this.handler = null;
    this.reset();
    this.listen();
  }

  get state() {
    const { azimuth, elevation, distance, target } = this;
    return { azimuth, elevation, distance, target };
  }

  set(state) {
    Object.assign(this, { ...state, target: [...(state.target || this.target)] });
    this.changed();
  }

  reset() {
    Object.assign(this, { ...this.first, target: [...this.first.target], isMoved: false });
    this.changed();
  }

  // The view from a side: front, top, side, or an isometric one. The target stays.
  look(name) {
    const [e1, e2, up] = this.camera.axes;
    const front =
      dot(up, [0, 1, 0]) ** 2 > 0.5 ? this.first.azimuth : Math.atan2(dot(e2, [0, -1, 0]), dot(e1, [0, -1, 0]));
    const views = {
      front: [front, 0],
      side: [front + Math.PI / 2, 0],
      top: [front, STEEPEST],
      free: [front + 0.6, 0.4],
    };
    const [azimuth, elevation] = views[name];
    this.set({ azimuth, elevation });
  }

  // Move the target and the distance so that points fill the picture.
  fit(points, aspect) {
    if (!points.length) return this.reset();
    this.set({ ...this.fitted(points, aspect), isMoved: false });
  }

  // The target and the distance from which points fill the picture.
  fitted(points, aspect) {
    const low = points.reduce((a, p) => a.map((x, k) => Math.min(x, p[k])), [Infinity, Infinity, Infinity]);
    const high = points.reduce((a, p) => a.map((x, k) => Math.max(x, p[k])), [-Infinity, -Infinity, -Infinity]);
    const target = scale(0.5, add(low, high));
    const { right, above, back } = this.matrices(aspect);
    const half = (1 / Math.tan(this.camera.field / 2)) * Math.min(1, aspect / 1.2);
    let distance = 0.02 * this.unit * this.first.distance;
    for (const p of points) {
      const d = sub(p, target);
      const [x, y] = [Math.abs(dot(d, right)) / aspect, Math.abs(dot(d, above))];
      distance = Math.max(distance, dot(d, back) + 1.3 * half * Math.max(x, y));
    }
    return { target, distance };
  }

  matrices(aspect, target = this.target, distance = this.distance) {
    return cameraMatrices({ ...this.camera, ...this.state, target, distance }, aspect);
  }

  shift(dx, dy) {
    const { right, above } = this.matrices(1);
    const k = (2 * this.distance * Math.tan(this.camera.field / 2)) / this.host.clientHeight;
    this.target = add(this.target, add(scale(-k * dx, right), scale(k * dy, above)));
    this.isMoved = true;
    this.changed();
  }

  orbit(dx, dy) {
    this.azimuth -= 0.008 * dx;
    this.elevation = Math.min(STEEPEST, Math.max(-STEEPEST, this.elevation + 0.008 * dy));
    this.changed();
  }

  zoom(factor) {
    const distance = this.unit * this.first.distance;
    this.distance = Math.min(100 * distance, Math.max(0.02 * distance, this.distance * factor));
    this.isMoved = true;
    this.changed();
  }

  // The place of an event in the picture [0 to 1], and the ray from the eye through it.
  grab(event) {
    const box = this.host.getBoundingClientRect();
    const [x, y] = [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
    const camera = this.shown || this.matrices(box.width / box.height);
    return {
      x,
      y,
      event,
      camera,
      eye: camera.eye,
      ray: rayThrough(camera, x, y),
      hit: () => this.pick?.(camera, x, y) || null,
    };
  }

  listen() {
    const { host, pointers } = this;
    host.addEventListener("pointerdown", (event) => {
      host.setPointerCapture(event.pointerId);
      pointers.set(event.pointerId, { at: [event.clientX, event.clientY], from: [event.clientX, event.clientY] });
      host.classList.add("held");
      if (pointers.size === 1 && event.button === 0 && !event.shiftKey) {
        const grab = this.grab(event);
        for (const grabber of this.grabbers) this.handler ||= grabber(grab);
      } else this.release();
    });
    host.addEventListener("pointermove", (event) => {
      const pointer = pointers.get(event.pointerId);
      if (!pointer) return;
      const to = [event.clientX, event.clientY];
      const [dx, dy] = [to[0] - pointer.at[0], to[1] - pointer.at[1]];
      if (this.handler) this.handler.move(this.grab(event));
      else if (pointers.size === 2) {
        const other = [...pointers].find(([id]) => id !== event.pointerId)[1].at;
        const distance = (p) => Math.hypot(p[0] - other[0], p[1] - other[1]) || 1;
        this.zoom(distance(pointer.at) / distance(to));
        this.shift(dx / 2, dy / 2);
      } else if (event.shiftKey || event.buttons === 2 || event.buttons === 4) this.shift(dx, dy);
      else this.orbit(dx, dy);
      pointer.at = to;
    });
    for (const end of ["pointerup", "pointercancel"]) {
      host.addEventListener(end, (event) => {
        const pointer = pointers.get(event.pointerId);
        pointers.delete(event.pointerId);
        if (!pointers.size) host.classList.remove("held");
        const held = this.handler !== null;
        this.release();
        if (!pointer || end === "pointercancel" || event.button !== 0) return;
        const moved = Math.hypot(event.clientX - pointer.from[0], event.clientY - pointer.from[1]);
        if (moved < CLICK && !(held && moved > 0)) for (const click of this.clicks) click(this.grab(event));
      });
    }
    host.addEventListener("contextmenu", (event) => event.preventDefault());
    host.addEventListener("dblclick", () => this.reset());
    host.addEventListener(
      "wheel",
      (event) => {
        // the wheel scrolls the page until the view is clicked
        if (this.embedded && document.activeElement !== host) return;
        event.preventDefault();
        this.zoom(Math.exp(0.0012 * Math.max(-200, Math.min(200, event.deltaY))));
      },
      { passive: false },
    );
  }

  release() {
    if (!this.handler) return;
    this.handler.end?.();
    this.handler = null;
    this.changed();
  }
}

// The point of a ray that is nearest to a point and in the plane through it that faces the eye: where a drag leads.
export function onPlane(grab, point, normal = grab.camera.back) {
  const k = dot(sub(point, grab.eye), normal) / (dot(grab.ray, normal) || 1e-9);
  return add(grab.eye, scale(k, grab.ray));
}

export const perpendicular = (z) => unit(cross(z, Math.abs(z[0]) < 0.9 ? [1, 0, 0] : [0, 1, 0]));
