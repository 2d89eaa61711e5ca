// Keys of the page: a table of names and actions, and which keys a control with the focus keeps for itself.

// Lists, boxes for text and sliders other than that of the time keep their keys; buttons and check boxes the space bar.
export function keepsKey(target, key) {
  const kind = target.tagName;
  if (kind === "SELECT" || kind === "TEXTAREA") return true;
  if (kind === "INPUT" && target.type !== "checkbox") {
    if (target.type === "range") return target.id !== "time" && /^(Arrow|Home|End|Page)/.test(key);
    return true;
  }
  return (
    (key === " " || key === "Enter") && (kind === "BUTTON" || kind === "INPUT" || kind === "A" || kind === "SUMMARY")
  );
}

export class Keys {
  constructor(scope = (_event) => true) {
    this.table = new Map(); // key -> { text, action }
    this.ended = new AbortController();
    document.addEventListener(
      "keydown",
      (event) => {
        if (!scope(event) || event.altKey || keepsKey(event.target, event.key)) return;
        if (document.querySelector("dialog[open]")) return; // a dialog keeps its keys, such as Escape
        const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
        const name = `${event.ctrlKey || event.metaKey ? "Ctrl+" : ""}${key}`;
        const known = this.table.get(name === "Ctrl+z" && event.shiftKey ? "Ctrl+y" : name);
        if (!known) return;
        event.preventDefault();
        known.action();
      },
      { signal: this.ended.signal },
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
