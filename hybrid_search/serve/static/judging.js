// Asks whether a span is meant, if the service takes answers, and remembers what was answered.

import { build } from "./dom.js";
import { judge, listJudgments } from "./service.js";

const answers = new Map();
let isAsked = false;
let report = () => {};

export async function openJudging(isTaken, attempt) {
  isAsked = isTaken;
  report = attempt;
  const judgments = isTaken ? await attempt(listJudgments) : null;
  for (const judgment of judgments ?? []) answers.set(keyOf(judgment), judgment.answer);
}

// `span` is {id, start, end, text}; a question about a phrase of its own is about that topic.
export function buildQuestion(index, phrase, id, { start, end, text }) {
  if (!isAsked || !phrase) return null;
  const judgment = { topic: phrase, phrase, index, id, start, end, text };
  const buttons = ["yes", "no"].map((answer) =>
    build("button", { type: "button", class: `answer ${answer}`, "data-answer": answer }, answer === "yes" ? "Yes" : "No"),
  );
  const show = () => {
    for (const button of buttons) {
      button.setAttribute("aria-pressed", String(answers.get(keyOf(judgment)) === button.dataset.answer));
    }
  };
  for (const button of buttons) {
    button.addEventListener("click", async () => {
      const saved = await report(() => judge({ ...judgment, answer: button.dataset.answer }));
      if (saved) answers.set(keyOf(judgment), saved.answer);
      show();
    });
  }
  show();
  const words = text.length > 60 ? `${text.slice(0, 60)}…` : text;
  return build(
    "div",
    { class: "question", role: "group", "aria-label": `Is this meant: ${words}` },
    build("span", { class: "asked" }, "Meant? ", build("bdi", {}, `“${words}”`)),
    build("span", { class: "answers" }, buttons),
  );
}

function keyOf({ topic, id, start, end }) {
  return JSON.stringify([topic, id, start, end]);
}
