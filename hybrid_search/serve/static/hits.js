// Shows the calls that fit, each with its words in their turns, and why it stands where it does.

import { build, formatScore, formatTime } from "./dom.js";
import { buildQuestion } from "./judging.js";
import { markText } from "./marking.js";
import { CodePoints } from "./offsets.js";
import { bestSpans } from "./ranking.js";

const SPANS = 3;
const AROUND = 180; // characters that are shown on either side of a span

export function buildHit(call, rank, { alpha, index, phrases }, open) {
  const { best } = call;
  const title = typeof best.metadata.title === "string" ? best.metadata.title : "";
  const name = build("bdi", { class: "id" }, best.id);
  const button = build("button", { type: "button", class: "open", "data-id": best.id, onclick: open }, name);
  return build(
    "li",
    { class: "hit", "data-id": best.id },
    build(
      "div",
      { class: "head" },
      build("span", { class: "rank", "aria-label": `rank ${rank}` }, String(rank)),
      build("h2", {}, button, title ? build("bdi", { class: "title" }, title) : null),
      buildScore(call, alpha),
    ),
    phrases.length > 1 ? build("p", { class: "fits" }, "by ", build("bdi", {}, `“${best.phrase}”`)) : null,
    buildExcerpts(call),
    bestSpans(call, SPANS).map(({ span }) => buildQuestion(index, best.phrase ?? phrases[0], best.id, span)),
    buildReasons(best, alpha),
  );
}

// How likely the call says the phrase, by its most probable passage; nothing where that is not known.
function buildProbability({ passages }) {
  const known = passages.map((hit) => hit.probability).filter((value) => value !== null);
  if (!known.length) return null;
  const probability = formatScore(Math.max(...known));
  return build("span", { class: "probability", title: "how likely the words express the phrase" }, `probability ${probability}`);
}

// Both parts of the score, each as long as it counts at this alpha, and how likely the call is.
function buildScore(call, alpha) {
  const { spans, bm25 } = call.best.explanation;
  const score = alpha * spans + (1 - alpha) * bm25;
  const label = `score ${formatScore(score)}: ${formatScore(alpha * spans)} from spans, ${formatScore((1 - alpha) * bm25)} from BM25`;
  const parts = [
    ["spans", alpha * spans],
    ["bm25", (1 - alpha) * bm25],
  ].map(([name, share]) => {
    const part = build("span", { class: `part ${name}` });
    part.style.setProperty("--share", String(share));
    return part;
  });
  return build(
    "div",
    { class: "score" },
    build("div", { class: "bar", role: "img", "aria-label": label, title: label }, parts),
    build("span", { class: "number", "aria-hidden": "true" }, formatScore(score)),
    buildProbability(call),
  );
}

function buildExcerpts(call) {
  const turns = new Map();
  for (const { span, hit } of bestSpans(call, SPANS)) {
    const key = `${hit.passage}/${span.turn}`;
    if (!turns.has(key)) turns.set(key, { hit, turn: span.turn, spans: [] });
    turns.get(key).spans.push(span);
  }
  return [...turns.values()].map(buildExcerpt);
}

function buildExcerpt({ hit, turn, spans }) {
  const points = new CodePoints(hit.text, hit.start);
  const place = hit.turns.find((item) => item.turn === turn) ?? { start: points.start, end: points.end };
  const [low, high] = [Math.max(place.start, points.start), Math.min(place.end, points.end)];
  const from = startAtBlank(points, Math.max(low, Math.min(...spans.map((span) => span.start)) - AROUND), low);
  const to = endAtBlank(points, Math.min(high, Math.max(...spans.map((span) => span.end)) + AROUND), high);
  const marks = [
    ...spans.map((span) => ({ start: span.start, end: span.end, kind: "span" })),
    ...(hit.highlights ?? []).map(([start, end]) => ({ start, end, kind: "term" })),
  ];
  return build(
    "div",
    { class: "excerpt" },
    buildSpeaker(spans[0]),
    build(
      "p",
      { class: "words", dir: "auto" },
      from > place.start ? "… " : "",
      markText(points, from, to, marks),
      to < place.end ? " …" : "",
    ),
  );
}

export function buildSpeaker(turn) {
  const time = formatTime(turn.start_ms);
  return build(
    "p",
    { class: "speaker" },
    turn.speaker ? build("bdi", {}, turn.speaker) : null,
    time ? build("span", { class: "time" }, time) : null,
  );
}

function startAtBlank(points, place, low) {
  if (place <= low) return low;
  const blank = points.slice(place, place + 30).search(/\s/);
  return blank < 0 ? place : place + blank + 1;
}

function endAtBlank(points, place, high) {
  if (place >= high) return high;
  const tail = points.slice(place - 30, place);
  const blank = tail.search(/\s\S*$/);
  return blank < 0 ? place : place - (tail.length - blank);
}

function buildReasons(hit, alpha) {
  const { spans, bm25, raw, ranks } = hit.explanation;
  const rank = (number) => (number ? String(number) : "–");
  const row = (name, kind, cells) =>
    build("tr", {}, build("th", { scope: "row" }, build("span", { class: `key ${kind}` }, name)), ...cells.map((cell) => build("td", {}, cell)));
  const terms = listTerms(hit);
  return build(
    "details",
    { class: "why" },
    build("summary", {}, "Why"),
    build(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "Parts of the score" },
      build(
        "table",
        {},
        build("thead", {}, build("tr", {}, ...["leg", "raw", "mapped to 0–1", "× weight", `rank of ${ranks.window}`].map((name) => build("th", { scope: "col" }, name)))),
        build(
          "tbody",
          {},
          row("spans", "spans", [
            `cosine\u00a0${formatScore(raw.cosine, 3)}${raw.prior ? ` +\u00a0prior\u00a0${formatScore(raw.prior, 3)}` : ""}`,
            formatScore(spans, 3),
            formatScore(alpha * spans, 3),
            rank(hit.cosine_rank),
          ]),
          row("BM25", "bm25", [
            formatScore(raw.bm25, 3),
            formatScore(bm25, 3),
            formatScore((1 - alpha) * bm25, 3),
            rank(hit.bm25_rank),
          ]),
        ),
      ),
    ),
    build("p", { class: "terms" }, terms.length ? ["Words that BM25 matched: ", build("b", { class: "term" }, terms.join(", "))] : "No word of the phrase is in this passage."),
  );
}

function listTerms(hit) {
  const points = new CodePoints(hit.text, hit.start);
  const words = (hit.highlights ?? []).map(([start, end]) => points.slice(start, end).toLowerCase());
  return [...new Set(words)].slice(0, 20);
}
