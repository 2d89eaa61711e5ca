// A lesson beside the page: a column of steps with text, a button that sets the page, readings, and a question whose
// answer the page's own functions check. It shares its place with the inspector.

import { chooser, leaveLesson } from "./chooser.js";
import { el, valueTable } from "./elements.js";
import { evaluate } from "./formulas.js";
import { oncePerFrame } from "./frames.js";
import { applySetting } from "./lesson_setting.js";
import { answerOf, namesOf } from "./lesson_values.js";
import { richText } from "./rich_text.js";
import { server } from "./server.js";
import { short, shownUnit } from "./units.js";

const SIDES = ["lesson", "inspector"];

export function buildLesson(app) {
  const { store, data, keys } = app;
  const { lesson } = data;
  if (!lesson) return; // the studio opens other mechanisms as well
  const host = document.getElementById("app");
  const link = app.readLink;
  store.define("lesson", { step: 0, solved: [] }, { link: true });
  const given = link().lesson;
  if (given)
    store.set({
      lesson: {
        step: Math.min(Math.max(0, given.step | 0), lesson.steps.length - 1),
        solved: [].concat(given.solved ?? []),
      },
    });
  const state = () => store.get("lesson");
  const go = (step) => {
    if (step < 0 || step >= lesson.steps.length) return;
    store.set({ lesson: { ...state(), step } });
    body.scrollTop = 0;
    heading.focus({ preventScroll: true });
  };
  const solve = () => store.set({ lesson: { ...state(), solved: [...new Set([...state().solved, state().step])] } });

  const heading = el("h2", { tabindex: "-1" });
  const dots = lesson.steps.map((step, k) =>
    el("button", { type: "button", text: String(k + 1), title: `step ${k + 1}: ${step.title}`, onclick: () => go(k) }),
  );
  const content = el("div", {});
  const back = el("button", {
    type: "button",
    text: "Back",
    title: "the step before (,)",
    onclick: () => go(state().step - 1),
  });
  const next = el("button", {
    type: "button",
    class: "main",
    text: "Next",
    title: "the next step (.)",
    onclick: () => go(state().step + 1),
  });
  const body = el(
    "div",
    { class: "lessonbody", tabindex: "0", role: "region", "aria-label": "text of the step" },
    heading,
    content,
  );
  const column = el(
    "aside",
    { class: "lesson", "aria-label": "lesson" },
    el(
      "div",
      { class: "lessonhead" },
      el("p", { class: "lessontitle", text: lesson.title }),
      server ? wayBack(app) : null,
      el("nav", { class: "dots", "aria-label": "steps of the lesson" }, dots),
    ),
    body,
    el("div", { class: "lessonfoot" }, back, next),
  );
  addColumn(host, column);
  keys.add(",", "lesson: the step before", () => go(state().step - 1));
  keys.add(".", "lesson: the next step", () => go(state().step + 1));

  let shown = -1;
  let readings = null;
  const refreshReadings = oncePerFrame(() => readings?.refresh());
  function show() {
    const { step: k, solved } = state();
    dots.forEach((dot, i) => {
      dot.setAttribute("aria-current", i === k ? "step" : "false");
      dot.classList.toggle("solved", solved.includes(i));
    });
    back.disabled = k === 0;
    next.disabled = k === lesson.steps.length - 1;
    if (shown === k) return;
    shown = k;
    const step = lesson.steps[k];
    heading.textContent = `${k + 1}. ${step.title}`;
    readings = step.readings.length ? buildReadings(app, step.readings) : null;
    content.replaceChildren(
      ...[
        ...richText(step.text),
        step.do
          ? el("button", {
              type: "button",
              class: "main do",
              text: step.do,
              title: "set up the page",
              onclick: () => applySetting(app, step.set),
            })
          : null,
        readings?.element,
        step.look ? el("div", { class: "look" }, richText(step.look)) : null,
        step.question ? buildQuestion(app, step.question, solve) : null,
        k === lesson.steps.length - 1
          ? el("p", { class: "hint", text: "This is the last step. The page is yours now: change what you like." })
          : null,
      ].filter(Boolean),
    );
  }
  app.lessonAnswers = () => lesson.steps.map((step) => (step.question ? answerOf(app, step.question) : null));
  store.on(["lesson"], show);
  store.on(["q", "qd", "time", "parameters", "units", "motion"], refreshReadings);
  show();
}

// In the studio a lesson leads to the others, and back to the mechanism before it.
function wayBack(app) {
  return el(
    "div",
    { class: "buttons" },
    el("button", {
      type: "button",
      class: "quiet",
      text: "all lessons",
      title: "choose another lesson or mechanism (Ctrl+o)",
      onclick: () => chooser(app),
    }),
    el("button", {
      type: "button",
      class: "quiet",
      text: "leave the lesson",
      title: "back to the mechanism before the lesson",
      onclick: () => leaveLesson(app),
    }),
  );
}

// The column takes the place of the inspector; two buttons choose between them, and one more part on a phone.
function addColumn(host, column) {
  const inspector = host.querySelector(".inspector");
  const phone = host.querySelector(".phone");
  const choose = (side) => {
    host.dataset.side = side;
    [...tabs.children].forEach((button, k) => button.setAttribute("aria-pressed", String(SIDES[k] === side)));
  };
  const tabs = el(
    "div",
    { class: "sides", role: "group", "aria-label": "what this column shows" },
    SIDES.map((side) =>
      el("button", { type: "button", text: side, title: `show the ${side}`, onclick: () => choose(side) }),
    ),
  );
  const right = el("div", { class: "right" }, tabs, column);
  inspector.before(right);
  right.append(inspector);
  host.classList.add("taught");
  choose("lesson");
  const part = el("button", {
    type: "button",
    text: "lesson",
    "aria-pressed": "false",
    onclick: () => {
      host.dataset.part = "lesson";
      [...phone.children].forEach((button) => button.setAttribute("aria-pressed", String(button === part)));
    },
  });
  phone.prepend(part);
  part.click();
}

function buildReadings(app, readings) {
  const { store } = app;
  const element = el("div", { class: "readings", role: "group", "aria-label": "numbers now" });
  const refresh = () => {
    const names = { ...namesOf(app), q: store.get("q"), qd: store.get("qd"), t: store.get("time") };
    element.replaceChildren(
      valueTable(
        readings.map(({ name, unit, value }) => {
          const x = evaluate(value, names);
          const shown = shownUnit(unit, store.get("units"));
          return [name, short(x * shown.factor), shown.unit, x];
        }),
      ),
    );
  };
  refresh();
  return { element, refresh };
}

function buildQuestion(app, question, solve) {
  const { store } = app;
  const right = answerOf(app, question);
  const unit = () => shownUnit(question.unit, store.get("units"));
  const text = () => `${significant(right * unit().factor)}${unit().unit ? ` ${unit().unit}` : ""}`;
  const box = el("input", {
    type: "text",
    inputmode: "decimal",
    class: "number",
    "aria-label": "your answer",
    autocomplete: "off",
    spellcheck: "false",
  });
  const unitText = el("span", { class: "unit", text: unit().unit });
  const verdict = el("div", { class: "reply", role: "status" });
  const reveal = el("button", {
    type: "button",
    class: "quiet",
    text: "Show the answer",
    title: "show the number and why",
    onclick: () => finish(`The answer is ${text()}.`, ""),
  });
  reveal.hidden = true;
  function finish(sentence, kind) {
    verdict.className = `reply ${kind}`;
    verdict.replaceChildren(el("p", { text: sentence }), ...richText(question.why));
    reveal.hidden = true;
  }
  function check() {
    const typed = box.value.trim().replace(",", ".");
    const given = Number(typed) / unit().factor;
    if (typed === "" || !Number.isFinite(given)) {
      verdict.className = "reply wrong";
      verdict.replaceChildren(el("p", { text: "Type a number, such as 0.5 or 1e-3." }));
      return;
    }
    if (Math.abs(given - right) <= question.within * Math.abs(right)) {
      finish(`Right: ${text()}.`, "right");
      solve();
      return;
    }
    const flipped = Math.abs(given + right) <= question.within * Math.abs(right);
    verdict.className = "reply wrong";
    verdict.replaceChildren(
      el("p", {
        text: flipped
          ? "The size is right, the sign is not."
          : `Not yet: this is too ${given > right ? "large" : "small"}.`,
      }),
      ...richText(question.hint),
    );
    reveal.hidden = false;
  }
  box.addEventListener("keydown", (event) => {
    if (event.key === "Enter") check();
    if (event.key === "Escape") box.blur();
  });
  store.on(["units"], () => {
    unitText.textContent = unit().unit;
  });
  return el(
    "section",
    { class: "question", "aria-label": "question" },
    richText(question.ask),
    el(
      "div",
      { class: "answer" },
      box,
      unitText,
      el("button", {
        type: "button",
        text: "Check",
        title: "compare with the page's own result (Enter)",
        onclick: check,
      }),
      reveal,
    ),
    verdict,
  );
}

// Four significant digits.
function significant(x) {
  return x === 0 || !Number.isFinite(x) ? String(x) : String(Number(x.toPrecision(4)));
}
