// A number that can be typed and slid: a name, a slider where it has bounds, a box, its unit, and a message below it.

import { breakable, el, isLong, repeated } from "./elements.js";
import { degreesOf, valueOf } from "./expressions.js";
import { neat, short, shownUnit } from "./units.js";

/**
 * Returns an element with set(value) and refresh(), for a change of units. Numbers are those of the model: radians and
 * SI units. The slider spans the limits, or `slider`, [low, high] or false for none; numbers beyond it can be typed.
 * `change` may return a sentence why it refuses a number, which is then shown below the box. `fixed` makes the number
 * readable only. `text` writes numbers. The box of an `optional` number may be empty: NaN.
 * @param {{ store: import("./store.js").Store, label: string, unit?: string, value: number, lower?: ?number,
 *   upper?: ?number, slider?: number[] | false | null, change: (value: number, done?: boolean) => any, title?: string,
 *   fixed?: boolean, text?: ?((value: number) => string), optional?: boolean }} options
 */
export function numberControl({
  store,
  label,
  unit = "",
  value,
  lower = null,
  upper = null,
  slider = null,
  change,
  title,
  fixed = false,
  text = null,
  optional = false,
}) {
  let current = value;
  const [low, high] = slider === false ? [null, null] : slider || [lower, upper];
  const range = low !== null && high !== null && high > low;
  const shown = text || (range ? short : neat); // beside a slider numbers vary, and their digits stay aligned
  const name = el("span", { class: "name", title: title || label }, breakable(label));
  const track = range
    ? el("input", {
        type: "range",
        min: "0",
        max: "1",
        step: "any",
        list: ticksOf(),
        "aria-label": `${title || label}, slider`,
      })
    : null;
  const ends = range ? [el("span", { class: "end" }), el("span", { class: "end" })] : [];
  const nudges = range && !fixed ? [-1, 1].map((sign) => nudge(title || label, sign, () => step(sign))) : [];
  const box = el("input", {
    type: "text",
    inputmode: "decimal",
    class: "number",
    "aria-label": title || label,
    autocomplete: "off",
    spellcheck: "false",
    readOnly: fixed,
  });
  const unitText = el("span", { class: "unit" });
  const message = el("p", { class: "error", hidden: true, role: "alert" });
  const row = el(
    "div",
    { class: range ? `control${isLong(label) ? " long" : ""}` : "control plain" },
    name,
    ...(range
      ? [nudges[0], box, nudges[1], unitText, el("span", { class: "slide" }, ends[0], track, ends[1])]
      : [box, unitText]),
    message,
  );

  const say = (fault) => {
    message.textContent = fault;
    message.hidden = !fault;
    box.setAttribute("aria-invalid", String(Boolean(fault)));
  };
  const factor = () => shownUnit(unit, store.get("units")).factor;
  function show() {
    if (document.activeElement !== box) box.value = shown(current * factor());
    box.dataset.value = String(current);
    if (track) track.value = (current - low) / (high - low);
    ends.forEach((end, k) => {
      end.textContent = rounded([low, high][k] * factor());
    });
    unitText.textContent = shownUnit(unit, store.get("units")).unit;
    unitText.classList.toggle("several", unit.includes(", "));
  }
  function give(next, done) {
    const before = current;
    current = next;
    show();
    const fault = change(next, done);
    if (typeof fault !== "string" || !fault) {
      if (done) box.value = shown(current * factor()); // the number of an expression, also while the box has the focus
      return;
    }
    current = before;
    box.dataset.value = String(before); // the refused text stays until the reader leaves the box
    say(fault);
  }
  function typed() {
    delete box.dataset.dirty;
    if (fixed || box.value === shown(current * factor())) return say(""); // typed again as it is shown: all digits stay
    const entry = box.value.trim().replace(",", ".");
    if (entry === "" && optional) return [say(""), give(NaN, true)];
    const given = (factor() === 1 ? valueOf(entry) : degreesOf(entry)) / factor();
    if (!Number.isFinite(given))
      return say("Type a number, such as 0.5 or 1e-3, or an expression, such as 1/3 or pi/2.");
    const bound = (x) => `${neat(x * factor())} ${unitText.textContent}`.trim();
    if (lower !== null && given < lower - 1e-12) return say(`The least value is ${bound(lower)}.`);
    if (upper !== null && given > upper + 1e-12) return say(`The largest value is ${bound(upper)}.`);
    say("");
    give(given, true);
  }
  // A step of the button, or of an arrow key in the box: a round number of about a hundredth of the range.
  function step(sign) {
    say("");
    const size = roundStep(((high - low) * factor()) / STEPS) / factor();
    const next = Math.min(upper ?? Infinity, Math.max(lower ?? -Infinity, current + sign * size));
    give(next, true);
  }
  if (track) {
    track.addEventListener("input", () => {
      say("");
      give(low + Number(track.value) * (high - low), false);
    });
    track.addEventListener("change", () => change(current, true));
  }
  box.addEventListener("change", typed);
  box.addEventListener("keydown", (event) => {
    if (event.key === "Enter") typed();
    if (event.key === "Escape") box.blur();
    const way = { ArrowUp: 1, ArrowDown: -1 }[event.key];
    if (!way || !range || fixed) return;
    event.preventDefault();
    step(way);
  });
  box.addEventListener("input", () => {
    box.dataset.dirty = ""; // keeps the space bar (keys.js)
  });
  box.addEventListener("blur", () => {
    show();
    box.setAttribute("aria-invalid", "false"); // it has the number of before again
  });
  box.addEventListener("focus", () => box.select());
  show();
  return Object.assign(row, {
    set: (next) => {
      if (next !== current) say("");
      current = next;
      show();
    },
    refresh: show,
    say,
    message,
    now: () => current,
  });
}

const STEPS = 100; // of a range

// The power of ten, or two or five of it, at or above a size.
export function roundStep(size) {
  const power = 10 ** Math.floor(Math.log10(size));
  return [1, 2, 5, 10].map((k) => k * power).find((x) => x >= size * (1 - 1e-9));
}

const rounded = (x) => String(Number(x.toPrecision(3)));

function nudge(name, sign, action) {
  const word = sign > 0 ? "more" : "less";
  const text = sign > 0 ? "+" : "\u2212";
  const title = `${word}; held, again and again`;
  return repeated(
    el("button", { type: "button", class: "nudge", text, title, tabindex: "-1", "aria-label": `${name}, ${word}` }),
    action,
  );
}

// Marks at the ends, the quarters and the middle of all sliders: the name of their list.
function ticksOf() {
  if (!document.getElementById("ticks"))
    document.body.append(
      el(
        "datalist",
        { id: "ticks" },
        [0, 0.25, 0.5, 0.75, 1].map((x) => el("option", { value: String(x) })),
      ),
    );
  return "ticks";
}
