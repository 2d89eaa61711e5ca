// Opening another mechanism in the studio: one of the library or of a lesson, a file of the folder, or files of this
// computer, which may be dropped anywhere on the page.

import { dialog } from "./dialogs.js";
import { el } from "./elements.js";
import { stateOf } from "./link.js";
import { openMade } from "./replacing.js";
import { server } from "./server.js";

const MODELS = [".toml", ".urdf", ".xml", ".csv"];
const MOST = 200; // files of one upload, and
const LARGEST = 24e6; // [bytes] of all of them: as studio/uploads.py accepts them

// Call an action that opens a mechanism, and show it. Refusals are shown by say(text).
async function open(app, what, action, args, say, given) {
  const made = await openMade(app, what, action, args, { say, given });
  const suspects = (made?.found.report || []).filter((entry) => entry.sort === "suspect" || entry.sort === "dropped");
  if (suspects.length)
    made.app.say(
      `${suspects.length === 1 ? "One remark" : `${suspects.length} remarks`} on ${what}: ${suspects[0].text}`,
      { calm: true },
    );
}

export const openLibrary = (app, name, say = app.say) => open(app, name, "open_library", { name }, say);
export const openFile = (app, name, say = app.say, base = "fixed") => open(app, name, "open_file", { name, base }, say);

// Open a lesson, in the mode in which its mechanism begins; the session keeps the state to which it leads back.
function openLesson(app, { name, title }, say) {
  if (!app.data.lesson) app.session.before = stateOf(app);
  return open(app, title, "open_lesson", { name }, say, { mode: "" });
}

export const leaveLesson = (app) =>
  open(app, "the mechanism before", "leave_lesson", {}, app.say, { hash: app.session.before });

// Files are [File, relative path] pairs: a model, with the meshes that it refers to.
export async function openUploads(app, files, say = app.say, base = "fixed") {
  const models = files.filter(([, path]) => MODELS.some((suffix) => path.toLowerCase().endsWith(suffix)));
  if (!models.length) return say(`This is no model: drop a file that ends with ${MODELS.join(", ")}.`);
  if (files.length > MOST) return say(`${files.length} files are too many; at most ${MOST} can be opened together.`);
  if (files.reduce((sum, [file]) => sum + file.size, 0) > LARGEST)
    return say(`The files are larger than ${LARGEST / 1e6} MB; put them into the folder and open them there.`);
  const depth = ([, path]) => path.split("/").length;
  const top = models.filter((model) => depth(model) === Math.min(...models.map(depth))); // others may be included by it
  if (top.length > 1)
    return say(
      `Several models: ${top
        .map(([, path]) => path)
        .slice(0, 5)
        .join(", ")}. Open one of them, with its meshes.`,
    );
  const [[file, name]] = top;
  if (name.toLowerCase().endsWith(".csv") && /^\s*"?t"?\s*,/.test(await file.slice(0, 200).text()))
    return say(`${name} is a motion: choose it in the mode Inverse, under "file".`);
  const uploads = await Promise.all(files.map(async ([one, path]) => ({ name: path, content: await base64(one) })));
  return open(app, name, "open_file", { uploads, name, base }, say);
}

async function base64(file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  let text = "";
  for (let k = 0; k < bytes.length; k += 0x8000) text += String.fromCharCode(...bytes.subarray(k, k + 0x8000));
  return btoa(text);
}

// The dialog: the library with pictures, the lessons, the folder, and this computer.
export async function chooser(app) {
  const message = el("p", { class: "hint", role: "status" });
  const say = (text) => {
    message.textContent = text;
    message.classList.toggle("missing", Boolean(text));
    message.scrollIntoView({ block: "nearest" }); // the files of this computer are at the other end of the dialog
  };
  const cards = el("div", { class: "gallery", role: "list", "aria-label": "mechanisms of the library" });
  const lessons = el("div", { class: "lessons", role: "list", "aria-label": "lessons" });
  const listed = el("div", { class: "buttons files" });
  const none = el("p", { class: "hint", role: "status" });
  const search = searchBox(cards, none);
  const free = el("input", { type: "checkbox" });
  const base = () => (free.checked ? "free" : "fixed");
  const chosen = el("input", {
    type: "file",
    multiple: true,
    accept: `${MODELS.join(",")},.stl,.obj,.dae`,
    "aria-label": "model file of this computer, with its meshes",
  });
  chosen.addEventListener("change", () =>
    openUploads(
      app,
      [...chosen.files].map((file) => [file, file.name]),
      say,
      base(),
    ),
  );
  dialog(
    "Open a mechanism or a lesson",
    message,
    el(
      "section",
      { class: "group" },
      el("div", { class: "titled" }, el("h2", { text: "Library" }), search),
      cards,
      none,
    ),
    el("section", { class: "group" }, el("h2", { text: "Lessons" }), lessons),
    el("section", { class: "group" }, el("h2", { class: "folder", text: "Folder" }), listed),
    el(
      "section",
      { class: "group" },
      el("h2", { text: "This computer" }),
      chosen,
      el("p", {
        class: "hint",
        text: "TOML, URDF, MJCF or a DH table as CSV, with its meshes; or drop them anywhere on the page.",
      }),
      el("label", { class: "check", title: "the root link of a URDF file floats" }, free, "URDF with a free base"),
    ),
  ).classList.add("wide");
  try {
    const [{ mechanisms }, { lessons: taught }, { folder, files }] = await Promise.all(
      ["gallery", "lessons", "files"].map((name) => server.call(name)),
    );
    cards.append(...mechanisms.map((mechanism) => card(mechanism, () => openLibrary(app, mechanism.name, say))));
    lessons.append(...taught.map((lesson) => lessonRow(lesson, () => openLesson(app, lesson, say))));
    document.querySelector("dialog .folder")?.replaceChildren(`Folder ${folder}`);
    listed.replaceChildren(
      ...files.map((name) =>
        el("button", { type: "button", text: name, onclick: () => openFile(app, name, say, base()) }),
      ),
      ...(files.length ? [] : [el("p", { class: "hint", text: "No model files here yet." })]),
    );
  } catch (error) {
    say(error.message);
  }
}

// A box that hides the cards without the typed words, and says where no card is left.
function searchBox(cards, none) {
  const search = el("input", {
    type: "search",
    class: "search",
    placeholder: "search",
    "aria-label": "search the library",
    oninput: () => {
      const words = search.value.toLowerCase();
      for (const card of cards.children) card.hidden = !card.dataset.words.includes(words);
      none.textContent = [...cards.children].some((card) => !card.hidden)
        ? ""
        : `No mechanism of the library has "${search.value}" in its name or description.`;
    },
  });
  return search;
}

function card({ name, description, bodies, nv, loops, picture }, choose) {
  const sheet = el("canvas", { width: 240, height: 160, "aria-hidden": "true" });
  if (picture)
    createImageBitmap(new Blob([picture], { type: "image/png" })).then((image) =>
      sheet.getContext("2d").drawImage(image, 0, 0),
    );
  const size =
    `${bodies} ${bodies === 1 ? "body" : "bodies"}, ${nv} ` +
    `velocities${loops ? `, ${loops} ${loops === 1 ? "loop" : "loops"}` : ""}`;
  const made = el(
    "button",
    { type: "button", class: "card", role: "listitem", title: description || name, onclick: choose },
    sheet,
    el("b", { text: name }),
    el("span", { class: "hint", text: size }),
  );
  made.dataset.words = `${name} ${description}`.toLowerCase();
  return made;
}

function lessonRow({ title, summary, minutes }, choose) {
  return el(
    "button",
    { type: "button", class: "lessonrow", role: "listitem", onclick: choose },
    el("b", { text: title }),
    el("span", { class: "hint", text: `${summary} ${minutes} minutes.` }),
  );
}

// Files that are dropped on the page. Folders are read to their ends.
export function listenForDrops(app, signal) {
  const has = (event) => [...(event.dataTransfer?.types || [])].includes("Files");
  const isInput = (event) => event.target.type === "file"; // takes the files itself
  document.addEventListener(
    "dragover",
    (event) => {
      if (!has(event) || isInput(event)) return;
      event.preventDefault();
      document.body.classList.add("dropping");
    },
    { signal },
  );
  document.addEventListener(
    "dragleave",
    (event) => {
      if (!event.relatedTarget) document.body.classList.remove("dropping");
    },
    { signal },
  );
  document.addEventListener(
    "drop",
    async (event) => {
      document.body.classList.remove("dropping");
      if (!has(event) || isInput(event)) return;
      event.preventDefault();
      const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
      try {
        const found = entries.length
          ? (await Promise.all(entries.map((entry) => filesOf(entry, "")))).flat()
          : [...event.dataTransfer.files].map((file) => [file, file.name]);
        await openUploads(app, found.slice(0, MOST + 1));
      } catch (error) {
        app.say(error.message);
      }
    },
    { signal },
  );
}

async function filesOf(entry, above) {
  const path = `${above}${entry.name}`;
  if (entry.name.startsWith(".")) return [];
  if (entry.isFile) return [[await new Promise((found, failed) => entry.file(found, failed)), path]];
  const reader = entry.createReader();
  const out = [];
  for (;;) {
    // a reader returns entries in portions
    const some = await new Promise((found, failed) => reader.readEntries(found, failed));
    if (!some.length) return out;
    for (const inner of some) {
      out.push(...(await filesOf(inner, `${path}/`)));
      if (out.length > MOST) return out;
    }
  }
}
