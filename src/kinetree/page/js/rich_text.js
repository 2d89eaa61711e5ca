// Text of lessons as elements: paragraphs, lists, *emphasis*, `code`, and formulas between dollar signs.

import { el } from "./elements.js";
import { math } from "./math.js";

const INLINE = /\$\$([^$]+)\$\$|\$([^$]+)\$|`([^`]+)`|\*([^*]+)\*/g;

export function richText(text) {
  return text
    .trim()
    .split(/\n\s*\n/)
    .map((part) => {
      const only = /^\$\$([^$]+)\$\$$/.exec(part.trim());
      if (only) return el("div", { class: "display" }, math(only[1], { block: true }));
      const lines = part.split("\n");
      if (lines.every((line) => /^(- |  )/.test(line)))
        return el(
          "ul",
          {},
          part
            .split(/^- /m)
            .filter((item) => item.trim())
            .map((item) => el("li", {}, inline(item))),
        );
      return el("p", {}, inline(part));
    });
}

function inline(text) {
  const out = [];
  let at = 0;
  for (const found of text.matchAll(INLINE)) {
    out.push(text.slice(at, found.index));
    const [whole, block, formula, code, stressed] = found;
    if (block !== undefined) out.push(el("span", { class: "display" }, math(block, { block: true })));
    else if (formula !== undefined) out.push(math(formula));
    else out.push(code !== undefined ? el("code", { text: code }) : el("em", { text: stressed }));
    at = found.index + whole.length;
  }
  out.push(text.slice(at));
  return out;
}
