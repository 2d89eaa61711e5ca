// The player: time runs, stops and is chosen. It shows the motion in the store's field `motion`.
//
// A motion with `extend(time)` is computed while it is shown, and has no end; others end, or begin again with `loop`
// unless they are to play `once`.

import { el } from "./elements.js";
import { oncePerFrame } from "./frames.js";

const SPEEDS = ["-1", "0.1", "0.25", "0.5", "1", "2", "5", "10"];
const SINGLE = 1 / 60; // [s] of one step forward or back
const LONGEST = 0.1; // [s] a frame that took longer counts as this long, as after a pause of the browser

const single = (id, text, title, onclick) => {
  const name = title.replace(/ \(.*/, "");
  return el("button", { id, type: "button", class: "single", text, title, "aria-label": name, onclick });
};

export class Player {
  constructor(host, store, { toggles = [] } = {}) {
    this.store = store;
    this.before = 0;
    this.ask = oncePerFrame((now) => {
      if (this.playing) this.advance(now);
    });
    const range = el("input", { id: "time", type: "range", min: "0", max: "1", step: "any", "aria-label": "time" });
    const parts = (this.parts = {
      play: el("button", {
        id: "play",
        type: "button",
        class: "primary",
        title: "play or pause (space)",
        "aria-label": "play",
      }),
      back: el("button", {
        id: "start",
        type: "button",
        class: "start",
        title: "back to the start (Home)",
        "aria-label": "back to the start",
      }),
      fore: single("fore", "\u203a", "one step forward (.)", () => this.single(1)),
      time: range,
      clock: el("output", { id: "clock" }),
      speed: el(
        "select",
        { id: "speed", "aria-label": "speed", title: "speed of the player ([ and ])" },
        SPEEDS.map((s) => el("option", { value: s, text: s === "-1" ? "reverse" : `${s}x` })),
      ),
      rear: single("rear", "\u2039", "one step back (,)", () => this.single(-1)),
      loop: el("input", { id: "loop", type: "checkbox", checked: true }),
    });
    parts.speed.value = "1";
    host.append(
      parts.play,
      parts.back,
      parts.rear,
      parts.fore,
      parts.time,
      parts.clock,
      parts.speed,
      el("label", { title: "begin again at the end" }, parts.loop, "loop"),
      ...toggles,
    );
    parts.play.addEventListener("click", () => this.play(!this.playing));
    parts.back.addEventListener("click", () => this.seek(this.start));
    parts.time.addEventListener("input", () => this.seek(this.start + Number(parts.time.value) * this.span));
    parts.speed.addEventListener("change", () => store.set({ speed: Number(parts.speed.value) }));
    store.on(["time", "motion", "speed"], () => this.show());
    this.show();
  }

  get motion() {
    return this.store.get("motion");
  }
  get start() {
    return this.motion?.start ?? 0;
  }
  get end() {
    return this.motion?.end ?? 0;
  }
  get span() {
    return this.end - this.start;
  }
  get playing() {
    return this.store.get("playing");
  }

  // Whether there is anything to play.
  get ready() {
    return Boolean(this.motion && (this.motion.extend || this.span > 0));
  }

  show() {
    const { parts } = this;
    // a motion that is offered may end before the time of another one
    const now = Math.min(this.end, Math.max(this.start, this.store.get("time")));
    const digits = this.span < 2 ? 3 : 2;
    parts.time.value = this.span > 0 ? (now - this.start) / this.span : 0;
    parts.clock.textContent = `${now.toFixed(digits)} / ${this.end.toFixed(digits)} s`;
    parts.time.setAttribute("aria-valuetext", `${now.toFixed(3)} s`);
    parts.speed.value = String(this.store.get("speed"));
    for (const part of [parts.play, parts.back, parts.rear, parts.fore, parts.time]) part.disabled = !this.ready;
    parts.play.classList.toggle("on", this.playing);
    parts.play.setAttribute("aria-label", this.playing ? "pause" : "play");
    parts.loop.parentElement.hidden = Boolean(this.motion?.extend || this.motion?.once);
  }

  play(on) {
    if (on && !this.ready) return;
    if (on) this.rewind();
    this.before = performance.now();
    this.store.set({ playing: on });
    this.show();
    if (on) this.ask();
  }

  // Begin again where the motion is at its end, in the direction in which it plays.
  rewind() {
    const [time, forward] = [this.store.get("time"), this.store.get("speed") > 0];
    if (!forward && time <= this.start) this.store.set({ time: this.end });
    if (forward && !this.motion.extend && time >= this.end) this.store.set({ time: this.start });
  }

  // One step of the motion, forward or back; a motion that is computed while it is shown is computed on.
  single(sign) {
    if (!this.ready) return;
    this.play(false);
    const time = this.store.get("time") + sign * SINGLE;
    if (time > this.end) this.motion.extend?.(time);
    this.seek(time);
  }

  seek(time) {
    this.before = performance.now();
    this.store.set({ time: Math.min(this.end, Math.max(this.start, time)) }, { by: "player" });
  }

  step(parts) {
    this.seek(this.store.get("time") + (parts * Math.max(this.span, 1e-9)) / 100);
  }

  faster(by) {
    const speeds = SPEEDS.map(Number);
    const k = speeds.findIndex((s) => s >= this.store.get("speed"));
    this.store.set({ speed: speeds[Math.min(speeds.length - 1, Math.max(0, k + by))] });
  }

  advance(now) {
    const { store, motion } = this;
    const passed = Math.min(LONGEST, Math.max(0, (now - this.before) / 1000)) * store.get("speed");
    this.before = now;
    let time = store.get("time") + passed;
    if (time < this.start) {
      if (motion.extend || motion.once || !this.parts.loop.checked || !(this.span > 0)) {
        store.set({ time: this.start }, { by: "player" });
        return this.play(false);
      }
      time = this.end - ((this.start - time) % this.span);
    }
    if (time > this.end && motion.extend) time = Math.min(time, motion.extend(time));
    if (time >= this.end && !motion.extend) {
      if (this.parts.loop.checked && !motion.once && this.span > 0)
        time = this.start + ((time - this.start) % this.span);
      else {
        store.set({ time: this.end }, { by: "player" });
        return this.play(false);
      }
    }
    store.set({ time }, { by: "player" });
    if (this.playing) this.ask();
  }
}
