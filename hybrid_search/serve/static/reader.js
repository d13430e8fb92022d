// Shows a whole call: each word shaded by the best span that holds it, and its best spans as a list.

import { build, formatScore } from "./dom.js";
import { buildSpeaker } from "./hits.js";
import { buildQuestion } from "./judging.js";
import { markText } from "./marking.js";
import { CodePoints } from "./offsets.js";
import { openDocument } from "./service.js";

const LEVELS = [0.15, 0.2, 0.26, 0.33, 0.42]; // scores from which a word is shaded more
const SPANS = 10;
const LONG = 100_000; // characters of a text that is laid out only where it is seen
const CHUNK = 20_000; // characters of a long turn that are laid out together

export class Pane {
  constructor(options) {
    this.options = options; // {index, indexes, number, changed, remember, close, compare}
    this.root = build("article", { class: "pane" });
    this.current = -1;
  }

  get index() {
    return this.pane.index || this.options.index;
  }

  async show(pane) {
    this.pane = pane;
    this.abort?.abort();
    this.abort = new AbortController();
    const parameters = { index: this.index };
    if (pane.phrase.trim()) Object.assign(parameters, { phrase: pane.phrase, alpha: pane.alpha, spans: SPANS });
    const { signal } = this.abort;
    try {
      this.view = await openDocument(pane.id, parameters, signal);
    } catch (error) {
      if (signal.aborted || error.status === 401) throw error;
      this.renderProblem(error);
      return;
    }
    this.points = new CodePoints(this.view.text);
    this.render();
  }

  // What failed is told where it would stand: another phrase or index may do, and it can be closed.
  renderProblem(error) {
    const problem = build("p", { class: "notice problem", role: "alert" }, error.message);
    this.root.replaceChildren(this.buildHead(""), this.buildForm(this.pane), problem);
  }

  buildHead(title) {
    const { options } = this;
    this.heading = build("h2", { tabindex: "-1" }, build("bdi", { class: "id" }, this.pane.id), title ? build("bdi", { class: "title" }, title) : null);
    const buttons = build(
      "div",
      { class: "buttons" },
      options.compare ? build("button", { type: "button", class: "compare", onclick: options.compare }, "Compare") : null,
      build("button", { type: "button", class: "close", onclick: options.close }, "Close"),
    );
    return build("div", { class: "pane-head" }, this.heading, buttons);
  }

  render() {
    const { view, pane, options } = this;
    const title = typeof view.metadata.title === "string" ? view.metadata.title : "";
    this.text = build("div", { class: view.text.length > LONG ? "text long" : "text", tabindex: "0", role: "region", "aria-label": `Text of the call, view ${options.number + 1}` });
    const parts = [
      this.buildHead(title),
      this.buildForm(pane),
      buildMetadata(view.metadata),
      this.buildSpans(),
      view.words.length ? buildLegend() : null,
      this.text,
    ];
    this.root.replaceChildren(...parts.filter(Boolean));
    this.shade(pane.alpha);
  }

  buildForm(pane) {
    const number = this.options.number;
    const phrase = build("input", { id: `pane-phrase-${number}`, type: "text", maxlength: 5000, autocomplete: "off", spellcheck: "false" });
    phrase.value = pane.phrase;
    const output = build("output", { for: `pane-alpha-${number}` }, formatScore(pane.alpha));
    const alpha = build("input", { id: `pane-alpha-${number}`, type: "range", min: 0, max: 1, step: 0.05 });
    alpha.value = String(pane.alpha);
    alpha.addEventListener("input", () => {
      output.textContent = formatScore(alpha.value);
      this.pane.alpha = Number(alpha.value);
      this.shade(this.pane.alpha);
    });
    const index = this.buildIndexes();
    const change = () => this.options.changed({ ...this.pane, phrase: phrase.value, alpha: Number(alpha.value), index: index?.value ?? this.pane.index });
    alpha.addEventListener("change", () => this.options.remember());
    const form = build(
      "form",
      { class: "pane-form" },
      build("div", { class: "field" }, build("label", { for: phrase.id }, "Phrase"), phrase),
      build("div", { class: "field alpha" }, build("label", { for: alpha.id }, "Alpha ", output), alpha),
      build("button", { type: "submit" }, "Show"),
      index ? build("div", { class: "field whole" }, build("label", { for: index.id }, "Index"), index) : null,
    );
    index?.addEventListener("change", change);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      change();
    });
    return form;
  }

  // The same call may be in several indexes, of several models: a choice where two are compared.
  buildIndexes() {
    const { indexes, number, compare } = this.options;
    const isAlone = compare !== null && !this.pane.index;
    if (isAlone || indexes.length < 2) return null;
    const options = indexes.map(({ name, model }) => build("option", { value: name }, model ? `${name} (${model})` : name));
    const select = build("select", { id: `pane-index-${number}` }, options);
    select.value = this.index;
    return select;
  }

  buildSpans() {
    const { spans } = this.view;
    if (!spans.length) return null;
    const items = spans.map((span, number) => {
      const words = build("span", { class: "words", dir: "auto" }, shorten(span.text));
      const score = build("span", { class: "number" }, formatScore(span.cosine));
      const button = build("button", { type: "button", "data-jump": number, onclick: () => this.jump(number) }, score, words);
      return build("li", {}, button, buildQuestion(this.index, this.pane.phrase.trim(), this.view.id, span));
    });
    const step = (by) => () => this.jump((this.current + by + spans.length) % spans.length);
    return build(
      "details",
      { class: "best", open: true },
      build("summary", {}, `Best spans (${spans.length}), with their cosines`),
      build("div", { class: "buttons" }, build("button", { type: "button", onclick: step(-1) }, "Previous"), build("button", { type: "button", class: "next", onclick: step(1) }, "Next")),
      build("ol", {}, items),
    );
  }

  // Words are shaded by their own score and by that of their passage's words, as alpha weighs them.
  shade(alpha) {
    const marks = this.listMarks(alpha);
    this.text.replaceChildren(...this.view.turns.map((turn) => this.buildTurn(turn, marks)));
  }

  listMarks(alpha) {
    const { view } = this;
    const marks = view.spans.map((span, number) => ({ start: span.start, end: span.end, kind: "span", number, first: true }));
    marks.push(...view.highlights.map(([start, end]) => ({ start, end, kind: "term" })));
    let passage = 0;
    let last = null;
    for (const [start, end, score] of view.words) {
      while (passage + 1 < view.passages.length && view.passages[passage + 1].start <= start) passage += 1;
      const level = findLevel(alpha * score + (1 - alpha) * (view.passages[passage]?.bm25_part ?? 0));
      const isNext = last?.level === level && last.passage === passage && !this.points.slice(last.end, start).includes("\n");
      if (isNext) last.end = end;
      else {
        last = { start, end, kind: "heat", level, passage };
        if (level) marks.push(last);
      }
    }
    return marks.sort((first, second) => first.start - second.start);
  }

  buildTurn(turn, marks) {
    const ends = cutChunks(turn.start, turn.end);
    const paragraphs = ends.slice(1).map((end, number) => {
      const start = ends[number];
      const inside = selectMarks(marks, start, end);
      return build("p", { class: "words", dir: "auto" }, markText(this.points, start, end, inside));
    });
    return build("div", { class: "turn" }, buildSpeaker(turn), paragraphs);
  }

  jump(number) {
    this.current = number;
    for (const marked of this.root.querySelectorAll("[aria-current]")) marked.removeAttribute("aria-current");
    this.root.querySelector(`[data-jump="${number}"]`)?.setAttribute("aria-current", "true");
    const pieces = this.text.querySelectorAll(`mark[data-span="${number}"]`);
    for (const piece of pieces) piece.setAttribute("aria-current", "true");
    if (!pieces.length) return;
    pieces[0].setAttribute("tabindex", "-1");
    scrollTo(this.root, pieces[0]);
    pieces[0].focus({ preventScroll: true });
  }
}

// A pane that scrolls by itself leaves the rest of the page where it is.
function scrollTo(pane, element) {
  const top = window.scrollY;
  element.scrollIntoView({ block: "center", behavior: "instant" });
  if (pane.scrollHeight > pane.clientHeight) window.scrollTo(0, top);
}

function buildLegend() {
  const steps = LEVELS.map((least, number) => build("span", { class: `heat heat-${number + 1}` }, formatScore(least)));
  return build("p", { class: "legend" }, "Shaded by the best span around a word and by BM25, as alpha weighs them, from ", ...steps, " on.");
}

function findLevel(score) {
  return LEVELS.filter((least) => score >= least).length;
}

function cutChunks(start, end) {
  const edges = [];
  for (let edge = start; edge < end; edge += CHUNK) edges.push(edge);
  return [...edges, end];
}

// `marks` are sorted by their starts; those that overlap a place are near it.
function selectMarks(marks, start, end) {
  let [low, high] = [0, marks.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (marks[middle].start < end) low = middle + 1;
    else high = middle;
  }
  const selected = [];
  for (let number = low - 1; number >= 0 && marks[number].start > start - CHUNK; number -= 1) {
    if (marks[number].end > start) selected.push(marks[number]);
  }
  return selected;
}

function shorten(text) {
  const words = text.replace(/\s+/g, " ");
  return words.length > 120 ? `${words.slice(0, 120)}…` : words;
}

function buildMetadata(metadata) {
  const rows = Object.entries(metadata).filter(([name]) => name !== "title");
  if (!rows.length) return null;
  return build(
    "dl",
    { class: "metadata" },
    rows.map(([name, value]) => {
      const text = typeof value === "string" ? value : JSON.stringify(value);
      return build("div", {}, build("dt", {}, build("bdi", {}, name)), build("dd", {}, build("bdi", {}, shorten(text))));
    }),
  );
}
