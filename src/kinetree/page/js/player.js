// The player: time runs, stops and is chosen. It shows the motion in the store's field `motion`.
//
// A motion with `extend(time)` is computed while it is shown, and has no end; others end, or begin again with `loop`
// unless they are to play `once`.

import { el } from "./elements.js";
import { oncePerFrame } from "./frames.js";

const SPEEDS = ["0.1", "0.25", "0.5", "1", "2", "5", "10"];
const LONGEST = 0.1; // [s] a frame that took longer counts as this long, as after a pause of the browser

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
      time: range,
      clock: el("output", { id: "clock" }),
      speed: el(
        "select",
        { id: "speed", "aria-label": "speed", title: "speed of the player ([ and ])" },
        SPEEDS.map((s) => el("option", { value: s, text: `${s}x` })),
      ),
      loop: el("input", { id: "loop", type: "checkbox", checked: true }),
    });
    parts.speed.value = "1";
    host.append(
      parts.play,
      parts.back,
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
    for (const part of [parts.play, parts.back, parts.time]) part.disabled = !this.ready;
    parts.play.classList.toggle("on", this.playing);
    parts.play.setAttribute("aria-label", this.playing ? "pause" : "play");
    parts.loop.parentElement.hidden = Boolean(this.motion?.extend || this.motion?.once);
  }

  play(on) {
    if (on && !this.ready) return;
    if (on && !this.motion.extend && this.store.get("time") >= this.end) this.store.set({ time: this.start });
    this.before = performance.now();
    this.store.set({ playing: on });
    this.show();
    if (on) this.ask();
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
