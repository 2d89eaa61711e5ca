// Elements of the page. Names of a model become text, never HTML.

// el("button", { class: "play", text: "Play", title: "...", onclick: f, "aria-label": "play" }, child, child)
export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "text") made.textContent = value;
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name in made && typeof value !== "string") made[name] = value;
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return made;
}

// A name that may continue on the next line after a separator: the parts for el. A long one has a line of its own.
export const breakable = (name) => name.split(/(?<=[_.\-/ ])/).flatMap((part, k) => (k ? [el("wbr"), part] : [part]));
export const isLong = (name) => name.length > 22;

// A button that is on or off.
export function toggle(text, { title = text, on = false, change }) {
  const made = el("button", { type: "button", class: "toggle", text, title, "aria-pressed": String(on) });
  const set = (value) => made.setAttribute("aria-pressed", String(value));
  made.addEventListener("click", () => change(made.getAttribute("aria-pressed") !== "true"));
  return Object.assign(made, { set });
}

const FIRST = 400; // [ms] until a held button acts again,
const AGAIN = 80; // and between further times

// A button that acts when it is pressed, and again and again while it is held.
export function repeated(button, action) {
  let timer = 0;
  const stop = () => clearTimeout(timer);
  const again = (wait) => {
    timer = window.setTimeout(() => {
      if (!button.isConnected) return;
      action();
      again(AGAIN);
    }, wait);
  };
  button.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    stop();
    action();
    again(FIRST);
  });
  for (const name of ["pointerup", "pointerleave", "pointercancel", "blur"]) button.addEventListener(name, stop);
  button.addEventListener("click", (event) => event.detail === 0 && action()); // by the keyboard
  return button;
}

// One of several: choice(["none", "torque"], { label, value, change }); set(value) marks one.
export function choice(values, { label, value, change, titles = {} }) {
  const box = el("div", { class: values.length > 4 ? "choice many" : "choice", role: "group", "aria-label": label });
  const set = (now) =>
    [...box.children].forEach((button, k) => button.setAttribute("aria-pressed", String(values[k] === now)));
  box.append(
    ...values.map((text) =>
      el("button", {
        type: "button",
        text,
        title: titles[text] || text,
        onclick: () => {
          set(text);
          change(text);
        },
      }),
    ),
  );
  set(value);
  return Object.assign(box, { set });
}

const folded = new Set(); // titles of sections that the reader has folded

// A section of a panel with a heading, which folds it.
export function section(title, ...children) {
  const body = el("div", { class: "folds" }, children);
  const fold = el("button", {
    type: "button",
    text: title,
    title: `fold or unfold ${title}`,
    "aria-label": `fold ${title}`,
    onclick: () => {
      if (!folded.delete(title)) folded.add(title);
      show();
    },
  });
  const show = () => {
    body.hidden = folded.has(title);
    fold.setAttribute("aria-expanded", String(!body.hidden));
  };
  show();
  return el("section", { class: "group" }, el("h2", {}, fold), body);
}

// A table of names and values; rows are [name, value, unit?]. Numbers stand right, with their full value in data-value.
export function valueTable(rows) {
  return el(
    "table",
    { class: "values" },
    el(
      "tbody",
      {},
      rows.map(([name, value, unit = "", full]) =>
        el(
          "tr",
          {},
          el("th", { scope: "row", text: name }),
          el("td", { text: value, "data-value": full === undefined ? null : String(full) }),
          el("td", { class: "unit", text: unit }),
        ),
      ),
    ),
  );
}

// Save text or a Blob as a file.
export function download(name, content, type = "text/plain") {
  const blob = content instanceof Blob ? content : new Blob([content], { type });
  const anchor = el("a", { href: URL.createObjectURL(blob), download: name });
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(anchor.href), 10_000);
}
