// A tour of the page in two minutes: a card beside each part of it, which stays usable meanwhile. It offers itself
// once.

import { el } from "./elements.js";

const SEEN = "kinetree-tour"; // the key under which the browser remembers that the tour was offered
const GAP = 12; // [px] between a part and its card

const hasMode = (name) => (app) => app.panels.some((panel) => panel.name === name);
const mode = (name) => (app) => app.store.set({ mode: name });

// A stop: the part of the page, by a selector, and the part of a phone's page in which it is; suits(app); enter(app).
const STOPS = [
  {
    at: ".stage",
    title: "The mechanism",
    text: "Drag to rotate the view, use the wheel to zoom, and hold shift to move it. A click picks a body.",
  },
  {
    at: ".views",
    title: "Views",
    text: "Look from the front, the top or the side, or fit the mechanism into the picture. The keys are 1 to 4.",
  },
  {
    at: ".modes",
    title: "Modes",
    text:
      "What you can do with the mechanism: each mode has a panel of its own at the left. The mechanism and " +
      "the time stay when you change it.",
  },
  {
    at: ".left",
    part: "panel",
    title: "The panel",
    suits: hasMode("Move"),
    enter: mode("Move"),
    text: "Move a slider, or click a number and type another one. A click on deg at the top changes to radians.",
  },
  {
    at: ".player",
    title: "Motion",
    suits: hasMode("Simulate"),
    enter: mode("Simulate"),
    text:
      "In the mode Simulate the mechanism moves under gravity: press the button, or the space bar. Drag a " +
      "body to pull it. The names below show frames, joints, forces and more.",
  },
  {
    at: ".plots",
    part: "plots",
    title: "Curves",
    suits: hasMode("Simulate"),
    enter: (app) => {
      mode("Simulate")(app);
      app.store.get("motion")?.extend?.(2);
      app.plots.refresh();
      app.player.show();
    },
    text:
      "Curves follow the motion. Drag in a curve to choose an instant, and choose other quantities above " +
      "it. CSV saves all numbers.",
  },
  {
    at: ".inspector",
    part: "inspector",
    title: "Numbers",
    text:
      "All bodies, and the numbers of the picked one: mass, inertia, joint and pose. The dot at the right " +
      "of a name hides a body.",
  },
  {
    at: ".tools",
    title: "Save, undo, help",
    text:
      "Save has pictures, this page as a file, a link to its state, and the same in Python. The question " +
      "mark lists all keys, and this tour.",
  },
];

// Take the tour; the page is as before when it ends.
export function tour(app) {
  const host = document.getElementById("app");
  host.querySelector(".tour")?.remove();
  const before = app.store.get("mode");
  const focused = /** @type {?HTMLElement} */ (document.activeElement);
  const stops = STOPS.filter((stop) => (stop.suits?.(app) ?? true) && host.querySelector(stop.at));
  let now = 0;
  const ring = el("div", { class: "ring", "aria-hidden": "true" });
  const title = el("h2", { id: "tourtitle" });
  const text = el("p", { id: "tourtext" });
  const count = el("span", { class: "hint" });
  const button = (name, label, action) => el("button", { type: "button", text: name, title: label, onclick: action });
  const back = button("Back", "the stop before (left arrow)", () => go(now - 1));
  const next = button("Next", "the next stop (right arrow)", () => (now === stops.length - 1 ? end() : go(now + 1)));
  next.className = "main";
  const card = el(
    "div",
    {
      class: "tourcard",
      role: "dialog",
      tabindex: "-1",
      "aria-labelledby": "tourtitle",
      "aria-describedby": "tourtext",
    },
    title,
    text,
    el("div", { class: "tourfoot" }, count, button("End", "leave the tour (Esc)", end), back, next),
  );
  const box = el("div", { class: "tour" }, ring, card);
  host.append(box);

  function go(k) {
    if (k < 0 || k >= stops.length) return;
    now = k;
    const stop = stops[k];
    stop.enter?.(app);
    /** @type {NodeListOf<HTMLElement>} */
    const parts = host.querySelectorAll(".phone button");
    if (stop.part) [...parts].find((b) => b.textContent === stop.part)?.click();
    title.textContent = stop.title;
    text.textContent = stop.text;
    count.textContent = `${k + 1} of ${stops.length}`;
    back.disabled = k === 0;
    next.textContent = k === stops.length - 1 ? "Done" : "Next";
    host.querySelector(stop.at).scrollIntoView({ block: "nearest" });
    place();
    card.focus({ preventScroll: true });
  }
  // The ring around the part, and the card where there is most room beside it.
  function place() {
    const r = host.querySelector(stops[now].at).getBoundingClientRect();
    Object.assign(ring.style, {
      left: `${r.left}px`,
      top: `${r.top}px`,
      width: `${r.width}px`,
      height: `${r.height}px`,
    });
    const [w, h] = [card.offsetWidth, card.offsetHeight];
    const room = { right: innerWidth - r.right, left: r.left, below: innerHeight - r.bottom, above: r.top };
    const inside = (x, most, size) => Math.max(GAP, Math.min(x, most - size - GAP));
    let [x, y] = [r.left + (r.width - w) / 2, r.top + (r.height - h) / 2]; // over a part that leaves no room
    if (room.below > h + 2 * GAP) y = r.bottom + GAP;
    else if (room.right > w + 2 * GAP) x = r.right + GAP;
    else if (room.left > w + 2 * GAP) x = r.left - w - GAP;
    else if (room.above > h + 2 * GAP) y = r.top - h - GAP;
    else y = r.bottom - h - GAP;
    Object.assign(card.style, { left: `${inside(x, innerWidth, w)}px`, top: `${inside(y, innerHeight, h)}px` });
  }
  function onKey(event) {
    if (!box.isConnected) return stopListening();
    if (event.key === "Escape") {
      event.stopPropagation();
      return end();
    }
    if (!card.contains(document.activeElement)) return;
    if (event.key === "ArrowRight") go(now + 1);
    else if (event.key === "ArrowLeft") go(now - 1);
    else return;
    event.stopPropagation();
    event.preventDefault();
  }
  function stopListening() {
    document.removeEventListener("keydown", onKey, true);
    removeEventListener("resize", place);
  }
  function end() {
    stopListening();
    box.remove();
    app.store.set({ mode: before });
    focused?.focus?.();
  }
  document.addEventListener("keydown", onKey, true);
  addEventListener("resize", place);
  go(0);
}

// Offer the tour at the foot of the picture, once per browser, and only to readers of the page itself.
export function offerTour(app, stagebox) {
  try {
    if (window.top !== window || app.data.lesson || localStorage.getItem(SEEN)) return;
    localStorage.setItem(SEEN, "offered");
  } catch {
    return;
  } // a page in a frame without storage
  const offer = el(
    "aside",
    { class: "offer", "aria-label": "tour" },
    el("span", { text: "New here?" }),
    el("button", {
      type: "button",
      text: "Tour in two minutes",
      title: "see the parts of the page",
      onclick: () => {
        offer.remove();
        tour(app);
      },
    }),
    el("button", {
      type: "button",
      class: "quiet",
      text: "\u00d7",
      title: "no, thanks",
      "aria-label": "no tour",
      onclick: () => offer.remove(),
    }),
  );
  stagebox.append(offer);
  const stop = app.store.on(["mode"], () => {
    // the reader has found the way
    stop();
    offer.remove();
  });
}
