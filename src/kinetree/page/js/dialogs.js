// Dialogs: the list of keys, and what can be saved and shared.

import { csvOf } from "./chart_series.js";
import { download, el } from "./elements.js";
import { buildFolder } from "./folder.js";
import { stateOf } from "./link.js";
import { tomlText } from "./model_files.js";
import { fileName } from "./names.js";
import { server } from "./server.js";
import { tour } from "./tour.js";

export function dialog(title, ...children) {
  document.querySelector("dialog")?.remove();
  const box = el(
    "dialog",
    { "aria-label": title },
    el("h2", { text: title }),
    ...children,
    el("form", { method: "dialog" }, el("button", { text: "Close", class: "quiet" })),
  );
  box.addEventListener("close", () => box.remove());
  document.body.append(box);
  box.showModal();
  return box;
}

export function help(app) {
  const { keys } = app;
  const start = () => {
    box.close();
    tour(app);
  };
  const box = dialog(
    "Keys",
    el(
      "div",
      { class: "buttons" },
      el("button", { type: "button", text: "Tour in two minutes", title: "see the parts of the page", onclick: start }),
    ),
    el(
      "table",
      { class: "keys" },
      el(
        "tbody",
        {},
        keys
          .list()
          .map(([key, text]) => el("tr", {}, el("th", { scope: "row" }, el("kbd", { text: key })), el("td", { text }))),
      ),
    ),
  );
}

export function saving(app) {
  const { stage, model, part } = app;
  const state = stateOf(app);
  const whole = stateOf(app, { whole: true }); // files hold more than links
  const link = `${server ? server.address : location.href.split("#")[0]}${state}`;
  const row = (text, title, action) => el("button", { type: "button", text, title, onclick: action });
  const field = (label, text) =>
    el(
      "label",
      { class: "field" },
      el("span", { text: label }),
      el(
        "textarea",
        {
          readonly: "",
          rows: String(Math.min(12, text.split("\n").length)),
          value: text,
          onfocus: (event) => event.target.select(),
        },
        text,
      ),
    );
  const text = (label, lines, save, file) =>
    lines
      ? [
          field(label, lines),
          el(
            "div",
            { class: "buttons" },
            row(save, `save ${file}`, () => download(file, lines)),
          ),
        ]
      : [];
  dialog(
    "Save and share",
    el(
      "div",
      { class: "buttons" },
      row("Picture (PNG)", "the stage as it is", async () =>
        download(`${fileName(model.name)}.png`, await stage.image()),
      ),
      row("This page (HTML)", "the whole page as one file, in its present state", async () =>
        download(`${fileName(model.name)}.html`, await wholePage(whole), "text/html"),
      ),
    ),
    ...(server
      ? [
          buildFolder(fileName(model.name), [
            ["Page", ".html", () => wholePage(whole)],
            ["Picture", ".png", () => stage.image()],
            ...(app.data.kernel?.editable ? [["Mechanism", ".toml", () => tomlText(app)]] : []),
            ...(app.plots.charts.length ? [["Curves", ".csv", () => csvOf(app.plots.charts)]] : []),
          ]),
        ]
      : []),
    server && app.session.linked === false
      ? el("p", {
          class: "hint",
          text:
            "Link to this state: save the mechanism into the folder, and open it from there, so that a link " +
            "can open it again.",
        })
      : field("Link to this state", link),
    ...text("The same in Python", part?.python?.(), "Save as .py", `${fileName(model.name)}_run.py`),
    ...text("The same as an experiment", part?.toml?.(), "Save as .toml", `${fileName(model.name)}_experiment.toml`),
  );
}

// The page as a file that opens in a state. In the studio it is written anew, without its address and token.
async function wholePage(state) {
  return server ? (await server.call("page_file", { state })).text : pageSource(state);
}

// The page as a file: everything but what the scripts built.
export function pageSource(state = "") {
  const copy = /** @type {HTMLElement} */ (document.documentElement.cloneNode(true));
  copy.removeAttribute("data-theme");
  copy.querySelector("#app").replaceChildren();
  copy.querySelectorAll("dialog, #running").forEach((box) => box.remove());
  const body = copy.querySelector("body");
  for (const name of Object.keys(body.dataset)) delete body.dataset[name];
  const box = (name) => /** @type {HTMLElement} */ (copy.querySelector(name));
  delete box("#app").dataset.part;
  box("#data").dataset.state = state;
  return `<!DOCTYPE html>\n${copy.outerHTML}\n`;
}
