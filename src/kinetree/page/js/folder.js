// Saving into the chosen folder of the studio.

import { el } from "./elements.js";
import { server } from "./server.js";

// A row of a dialog: a name, and a button per kind. kinds: [[text, suffix, make()]], where make returns a text or a
// Blob.
export function buildFolder(name, kinds) {
  const message = el("p", { class: "hint", role: "status" });
  const box = el("input", {
    type: "text",
    class: "number name",
    value: name,
    "aria-label": "name of the file in the folder",
    spellcheck: "false",
    autocomplete: "off",
  });
  const replace = el("input", { type: "checkbox" });
  const say = (text, refused = false) => {
    message.textContent = text;
    message.classList.toggle("missing", refused);
  };
  const save = async (suffix, make) => {
    say("Saving ...");
    try {
      const content = await make();
      const blob = content instanceof Blob;
      const found = await server.call("save_file", {
        name: `${box.value.trim()}${suffix}`,
        content: blob ? await base64(content) : content,
        encoding: blob ? "base64" : "text",
        overwrite: replace.checked,
      });
      say(`Saved as ${found.path}`);
    } catch (error) {
      say(error.message, true);
    }
  };
  return el(
    "section",
    { class: "group" },
    el("h2", { text: "Into the folder" }),
    el(
      "div",
      { class: "buttons" },
      box,
      ...kinds.map(([text, suffix, make]) =>
        el("button", { type: "button", text, title: `save as ${suffix}`, onclick: () => save(suffix, make) }),
      ),
      el("label", { class: "check" }, replace, "overwrite"),
    ),
    message,
  );
}

async function base64(blob) {
  const address = await new Promise((done, failed) => {
    const reader = new FileReader();
    reader.onload = () => done(reader.result);
    reader.onerror = () => failed(reader.error);
    reader.readAsDataURL(blob);
  });
  return address.slice(address.indexOf(",") + 1);
}
