// The style and the script of a page are compressed; its policy lets the browser use them by their hashes, as it does
// this script.

import { decompressed } from "./data.js";

(async () => {
  const say = (error) => {
    const line = document.createElement("p");
    const browsers = "Chrome, Edge, Firefox or Safari";
    line.textContent = `The page cannot start: ${error.message}. Use a current version of ${browsers}.`;
    document.body.prepend(line);
  };
  try {
    for (const [id, tag] of [
      ["look", "style"],
      ["code", "script"],
    ]) {
      const packed = document.getElementById(id);
      if (!packed) continue; // reports have a plain style, which is printed without scripts too
      const made = document.createElement(tag);
      made.id = tag === "script" ? "running" : "style";
      made.textContent = await decompressed(packed.textContent).text();
      document[tag === "style" ? "head" : "body"].append(made);
    }
  } catch (error) {
    say(error);
  }
})();
