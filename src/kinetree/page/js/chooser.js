// Opening another mechanism in the studio: one of the library or of a lesson, a file of the folder, or files of this
// computer, which may be dropped anywhere on the page.

import { unpacked } from "./data.js";
import { dialog } from "./dialogs.js";
import { findDocument, keptDocuments } from "./documents.js";
import { el, section } from "./elements.js";
import { stateOf } from "./link.js";
import { tomlText } from "./model_files.js";
import { openMade } from "./replacing.js";
import { modelSuffixes, server } from "./server.js";

const GROUPS = ["Arms and chains", "Linkages", "Walkers", "Vehicles"]; // as studio/actions/files.py has them
const PAGE = /\.html?$/i;
const MOST = 200; // files of one upload, and
const LARGEST = 24e6; // [bytes] of all of them: as studio/uploads.py accepts them

// Call an action that opens a mechanism, and show it. Refusals are shown by say(text).
async function open(app, what, action, args, say, given) {
  const made = await openMade(app, what, action, args, { say, given });
  const report = made?.found.report || [];
  const [suspects, dropped] = ["suspect", "dropped"].map((sort) => report.filter((entry) => entry.sort === sort));
  const count = (n, what) => `${n} ${what}${n === 1 ? "" : "s"}`;
  const remarks = [
    ...(suspects.length ? [`${count(suspects.length, "remark")} on ${what}, first: ${suspects[0].text}.`] : []),
    ...(dropped.length ? [`${count(dropped.length, "part")} of the file were left out.`] : []),
    ...(suspects.length + dropped.length > 1 ? ["The mode Build has them all under Checks."] : []),
  ];
  if (remarks.length) made.app.say(remarks.join(" "), { calm: true });
}

export const openLibrary = (app, name, say = app.say) => open(app, name, "open_library", { name }, say);
// An address opens files of the folder with a fixed base; others are made again by the same call.
const openCall = (app, what, args, say) =>
  open(app, what, "open_file", args, say, args.base === "free" || args.uploads ? { made: asCall(args) } : {});
const asCall = (args) => ({ action: "open_file", args });
export const openFile = (app, name, say = app.say, base = "fixed") => openCall(app, name, { name, base }, say);

// Show a kept document again (documents.js): a Promise of its page.
export async function openDocument(app, kept, say = app.say) {
  const [where, ...name] = kept.source.split("/");
  const action = { library: "open_library", lesson: "open_lesson", folder: "open_file" }[where];
  const call = kept.call || (action && { action, args: { name: name.join("/") } });
  const { id, structures, history: past } = kept;
  const given = { hash: kept.state, document: id, structures, history: past, made: kept.call ?? undefined };
  if (call) return (await openMade(app, kept.title, call.action, call.args, { say, given }))?.app;
  if (history.state?.document !== kept.id) history.pushState({ document: kept.id }, "", server.addressOf(kept.source));
  location.reload(); // the mechanism with which the studio was started: its address alone opens it
}

// Back and Forward of the browser go from document to document.
export function listenForBack(session) {
  if (!server) return;
  window.addEventListener("popstate", () => {
    const id = history.state?.document;
    const kept = id && id !== session.document && findDocument(id);
    if (kept && session.app) openDocument(session.app, kept);
  });
}

// Open a lesson, in the mode in which its mechanism begins; the session keeps the state to which it leads back.
function openLesson(app, { name, title }, say) {
  if (!app.data.lesson) app.session.before = stateOf(app);
  return open(app, title, "open_lesson", { name }, say, { mode: "" });
}

export const leaveLesson = (app) =>
  open(app, "the mechanism before", "leave_lesson", {}, app.say, { hash: app.session.before });

// A page that was saved (dialogs.js) has the mechanism and the state of its document; meshes stay in the page alone.
async function openPage(app, file, name, say) {
  const kept = new DOMParser().parseFromString(await file.text(), "text/html").getElementById("data"); // runs nothing
  const read = async () => unpacked(JSON.parse(kept.textContent));
  const data = await read().catch(() => null);
  if (!data?.kernel?.editable) return say(`${name} is not a page of Kinetree from which a mechanism can be read.`);
  const text = tomlText({ data, model: data.model, store: { get: () => data.first.parameters } });
  const uploads = [{ name: "mechanism.toml", content: await base64(new Blob([text])) }];
  const call = { action: "open_file", args: { uploads, name: "mechanism.toml" } };
  return open(app, name, call.action, call.args, say, { made: call, hash: kept.dataset.state });
}

// Files are [File, relative path] pairs: a model, with the meshes that it refers to, or a saved page.
export async function openUploads(app, files, say = app.say, base = "fixed") {
  if (files.length === 1 && PAGE.test(files[0][1])) return openPage(app, files[0][0], files[0][1], say);
  const models = files.filter(([, path]) => modelSuffixes.some((suffix) => path.toLowerCase().endsWith(suffix)));
  if (!models.length) return say(`This is no model: drop a file that ends with ${modelSuffixes.join(", ")}.`);
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
    return say(`${name} is a motion: choose it in the mode Torques, under "file".`);
  const uploads = await Promise.all(files.map(async ([one, path]) => ({ name: path, content: await base64(one) })));
  return openCall(app, name, { uploads, name, base }, say);
}

async function base64(file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  let text = "";
  for (let k = 0; k < bytes.length; k += 0x8000) text += String.fromCharCode(...bytes.subarray(k, k + 0x8000));
  return btoa(text);
}

// The dialog: what was open last, the library with pictures, the lessons, the folder, and this computer. One search
// goes over all of them, and Enter opens the first that is left.
export async function chooser(app) {
  const message = el("p", { class: "hint", role: "status" });
  const say = (text) => {
    message.textContent = text;
    message.classList.toggle("missing", Boolean(text));
    message.scrollIntoView({ block: "nearest" }); // the files of this computer are at the other end of the dialog
  };
  const cards = el("div", { class: "groups" });
  const lessons = el("div", { class: "lessons", role: "group", "aria-label": "lessons" });
  const listed = el("div", { class: "buttons files" });
  const none = el("p", { class: "hint", role: "status" });
  const computer = buildComputer(app, say);
  const found = el(
    "div",
    { class: "found" },
    buildRecent(app, say),
    el("section", { class: "group" }, el("h2", { text: "Library" }), cards),
    el("section", { class: "group" }, el("h2", { text: "Lessons" }), lessons),
    el("section", { class: "group" }, el("h2", { class: "folder", text: "Files" }), listed),
  );
  dialog("Open a mechanism or a lesson", searchBox(found, none), message, none, found, computer.element).classList.add(
    "wide",
  );
  try {
    const [{ mechanisms }, { lessons: taught }, { folder, files }] = await Promise.all(
      ["gallery", "lessons", "files"].map((name) => server.call(name)),
    );
    cards.append(
      ...GROUPS.map((group) =>
        el(
          "div",
          { class: "shelf" },
          el("h3", { text: group }),
          el(
            "div",
            { class: "gallery", role: "group", "aria-label": group },
            mechanisms
              .filter((mechanism) => mechanism.group === group)
              .map((mechanism) => card(mechanism, () => openLibrary(app, mechanism.name, say))),
          ),
        ),
      ),
    );
    lessons.append(...taught.map((lesson) => lessonRow(lesson, () => openLesson(app, lesson, say))));
    document.querySelector("dialog .folder")?.replaceChildren(`Files in ${folder}`);
    listed.replaceChildren(
      ...files.map((name) =>
        findable(
          name,
          el("button", { type: "button", text: name, onclick: () => openFile(app, name, say, computer.base()) }),
        ),
      ),
      ...(files.length ? [] : [el("p", { class: "hint", text: "No model files here yet." })]),
    );
  } catch (error) {
    say(error.message);
  }
}

// A thing that the search finds by words.
function findable(words, made) {
  made.dataset.words = words.toLowerCase();
  return made;
}

// A box that hides what does not have the typed words, and says where nothing is left.
function searchBox(found, none) {
  const all = () => /** @type {HTMLElement[]} */ ([...found.querySelectorAll("[data-words]")]);
  const search = el("input", {
    type: "search",
    class: "search",
    autofocus: true,
    placeholder: "search: arms, linkages, walkers, lessons, files",
    "aria-label": "search mechanisms, lessons and files",
    oninput: () => {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      for (const one of all()) one.hidden = !words.every((word) => one.dataset.words.includes(word));
      for (const box of found.querySelectorAll(".shelf, .group")) {
        const inside = [...box.querySelectorAll("[data-words]")];
        box.hidden = words.length > 0 && !inside.some((one) => !one.hidden);
      }
      none.textContent = all().some((one) => !one.hidden)
        ? ""
        : `Nothing here has "${search.value}" in its name or description.`;
    },
    onkeydown: (event) => {
      if (event.key === "Enter")
        all()
          .find((one) => !one.hidden)
          ?.click();
    },
  });
  return search;
}

function card({ name, group, description, bodies, nv, loops, picture }, choose) {
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
    { type: "button", class: "card", title: description || name, onclick: choose },
    sheet,
    el("b", { text: name }),
    el("span", { class: "hint", text: size }),
  );
  return findable(`${name} ${group} ${description}`, made);
}

// Files of this computer; base(): that of URDF and SDF files.
function buildComputer(app, say) {
  const free = el("input", { type: "checkbox" });
  const base = () => (free.checked ? "free" : "fixed");
  const chosen = el("input", {
    type: "file",
    multiple: true,
    accept: `${modelSuffixes.join(",")},.html,.stl,.obj,.dae`,
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
  const element = section(
    "This computer",
    chosen,
    el("p", {
      class: "hint",
      text:
        "TOML, URDF, xacro, SDF, MJCF or a DH table as CSV, with its meshes, or a page that was saved here; or drop " +
        "them anywhere on the page.",
    }),
    el(
      "label",
      { class: "check", title: "the root link of a URDF or SDF file floats" },
      free,
      "URDF or SDF with a free base",
    ),
  );
  return { element, base };
}

// Documents that this browser keeps, without the one that is shown; null if there are none.
function buildRecent(app, say) {
  const recent = keptDocuments().filter((kept) => kept.id !== app.session.document && !kept.page);
  const rows = recent.map((kept) => recentRow(kept, () => openDocument(app, kept, say)));
  const list = { class: "lessons recent", role: "group", "aria-label": "documents that this browser keeps" };
  return rows.length ? section("Recent", el("div", list, rows)) : null;
}

// A row with a title and what is to be said about it; the search finds it by words.
function rowOf(title, text, words, onclick) {
  const made = el(
    "button",
    { type: "button", class: "lessonrow", onclick },
    el("b", { text: title }),
    el("span", { class: "hint", text }),
  );
  return findable(words, made);
}

function recentRow({ title, state, at }, choose) {
  const mode = /[#&]mode=([^&]+)/.exec(state)?.[1];
  const when = new Date(at).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
  return rowOf(title, [mode && decodeURIComponent(mode), when].filter(Boolean).join(", "), `${title} recent`, choose);
}

function lessonRow({ title, summary, minutes }, choose) {
  return rowOf(title, `${summary} ${minutes} minutes.`, `${title} ${summary} lesson`, choose);
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
