// Keys of the page: a table of names and actions, and which keys a control with the focus keeps for itself.

// Boxes for text keep their keys, and lists and sliders other than that of the time those that move them. Space plays
// also after a click on a button, which is then `clicked`, and after a number was typed; a control that was reached by
// the keyboard keeps it.
export function keepsKey(target, key, clicked = null) {
  const kind = target.tagName;
  if (kind === "TEXTAREA") return true;
  if (kind === "INPUT" && target.type === "range") return target.id !== "time" && /^(Arrow|Home|End|Page)/.test(key);
  if (key === " " && target.matches?.(".number")) return target.dataset.dirty !== undefined;
  if (kind === "INPUT" && target.type !== "checkbox") return true;
  if (kind === "SELECT" && key !== " ") return true;
  const presses = ["BUTTON", "INPUT", "A", "SUMMARY", "SELECT"].includes(kind);
  return presses && (key === "Enter" || (key === " " && target !== clicked));
}

export class Keys {
  constructor(scope = (_event) => true) {
    this.table = new Map(); // key -> { text, action }
    this.ended = new AbortController();
    let clicked = null;
    const { signal } = this.ended;
    document.addEventListener(
      "pointerdown",
      ({ target }) => {
        clicked = target instanceof Element ? target.closest("button, input, select, summary, a") : null;
      },
      { signal, capture: true },
    );
    document.addEventListener(
      "keydown",
      (event) => {
        if (event.key === "Tab") clicked = null;
        if (!scope(event) || event.altKey || keepsKey(event.target, event.key, clicked)) return;
        if (document.querySelector("dialog[open]")) return; // a dialog keeps its keys, such as Escape
        const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
        const name = `${event.ctrlKey || event.metaKey ? "Ctrl+" : ""}${key}`;
        const known = this.table.get(name === "Ctrl+z" && event.shiftKey ? "Ctrl+y" : name);
        if (!known) return;
        event.preventDefault();
        known.action();
      },
      { signal },
    );
  }

  stop() {
    this.ended.abort();
  }

  // Ctrl stands for the command key as well. A second key of the same name replaces the first.
  add(key, text, action) {
    this.table.set(key, { text, action });
  }

  list() {
    return [...this.table].map(([key, { text }]) => [key === " " ? "space" : key, text]);
  }
}
