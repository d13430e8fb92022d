// The inspector: reads what to show from the address, asks the service, and shows it.

import { build, find, formatScore } from "./dom.js";
import { buildFilters, chooseFields } from "./filters.js";
import { buildHit } from "./hits.js";
import { openJudging } from "./judging.js";
import { Candidates } from "./ranking.js";
import { Pane } from "./reader.js";
import { ALPHA, FEEDBACK, readState, writeState } from "./state.js";
import { listIndexes, query, useToken } from "./service.js";

const PASSAGES = 60; // that are fetched, to be ranked here at every alpha
const SHOWN = 10;

let state = { phrases: [], index: "", alpha: ALPHA, feedback: 0, where: {}, speaker: "", not: "", panes: [] };
let indexes = [];
let candidates = new Candidates();
let facets = {};
let shown = SHOWN;
let abort = null;
let panes = [];

async function search({ fresh = true } = {}) {
  abort?.abort();
  if (!state.phrases.length) return;
  abort = new AbortController();
  const { signal } = abort;
  find("status").textContent = "Searching…";
  const result = await attempt(() => ask(signal, fresh));
  if (signal.aborted) return;
  if (!result) {
    clearHits();
    return;
  }
  if (fresh) {
    candidates = new Candidates();
    facets = result.facets;
    shown = SHOWN;
  }
  candidates.add(result.hits);
  showHits();
  if (fresh) showFilters();
  const calls = candidates.rank(state.alpha).length;
  const warnings = result.plan.warnings?.length ? ` ${result.plan.warnings.join(" ")}` : "";
  const unlikely = result.likely === 0 ? "Nothing likely found. " : "";
  find("status").textContent = calls
    ? `${unlikely}${calls} calls in the best ${result.hits.length} of ${result.total} ranked passages, by ${result.plan.model}.${warnings}`
    : `Nothing fits.${warnings}`;
}

// The values of a field that is filtered are counted without its own filter, so that others can be added.
async function ask(signal, isCounted) {
  const body = buildQuery();
  const names = isCounted ? Object.keys(state.where) : [];
  const [result, ...counts] = await Promise.all([query(body, signal), ...names.map((name) => countValues(body, name, signal))]);
  return { ...result, facets: Object.assign(result.facets ?? {}, ...counts) };
}

async function countValues(body, name, signal) {
  const { [name]: _, ...where } = body.where;
  const { facets: counts } = await query({ ...body, where, facets: [name], spans: 0, explain: false, highlight: false, texts: false }, signal);
  return counts;
}

function clearHits() {
  candidates = new Candidates();
  find("status").textContent = "";
  find("list").replaceChildren();
  for (const id of ["filters", "more", "legend"]) find(id).hidden = true;
}

function buildQuery() {
  const index = indexes.find((item) => item.name === state.index);
  return {
    phrase: state.phrases.length === 1 ? state.phrases[0] : state.phrases,
    index: state.index || "calls",
    alpha: state.alpha,
    feedback: state.feedback,
    size: PASSAGES,
    where: Object.keys(state.where).length ? state.where : null,
    speaker: state.speaker || null,
    not: state.not || null,
    facets: chooseFields(index),
    group_by: "passage",
    explain: true,
    highlight: true,
    texts: true,
  };
}

function showHits() {
  const calls = candidates.rank(state.alpha);
  const list = find("list");
  const opened = new Set([...list.querySelectorAll("details[open]")].map((item) => item.closest("li").dataset.id));
  const focused = list.contains(document.activeElement) ? document.activeElement.closest("li")?.dataset.id : null;
  const items = calls.slice(0, shown).map((call, number) => {
    const item = buildHit(call, number + 1, state, () => openCall(call.best));
    if (opened.has(call.best.id)) item.querySelector("details").open = true;
    return item;
  });
  list.replaceChildren(...items);
  items.find((item) => item.dataset.id === focused)?.querySelector("button")?.focus();
  find("more").hidden = calls.length <= shown;
  find("welcome").hidden = true;
  find("legend").hidden = !calls.length;
}

function showFilters() {
  const groups = buildFilters(facets, state.where, (name, values) => {
    const { [name]: _, ...others } = state.where;
    change({ where: values.length ? { ...others, [name]: values } : others });
    search();
  });
  find("filters").replaceChildren(...groups);
  find("filters").hidden = !groups.length;
}

function openCall({ id, phrase }) {
  change({ panes: [{ id, phrase: phrase ?? state.phrases[0] ?? "", alpha: state.alpha }] }, { push: true });
  return showPanes({ focus: true });
}

async function showPanes({ focus = false } = {}) {
  const reader = find("reader");
  panes = state.panes.map((_, number) => buildPane(number));
  reader.replaceChildren(...panes.map((pane) => pane.root));
  reader.hidden = !panes.length;
  document.body.classList.toggle("reading", panes.length > 0);
  document.body.classList.toggle("comparing", panes.length > 1);
  const shows = panes.map((pane, number) => attempt(() => pane.show({ ...state.panes[number] }).then(() => true)));
  const [first] = await Promise.all(shows);
  if (first && focus) {
    if (!isWide() || panes.length > 1) window.scrollTo(0, 0);
    panes.at(-1)?.heading?.focus({ preventScroll: true });
  }
}

function buildPane(number) {
  const replace = (pane) => state.panes.map((other, place) => (place === number ? pane : other));
  const pane = new Pane({
    index: state.index || "calls",
    indexes,
    number,
    changed: (values) => {
      change({ panes: replace(values) });
      attempt(() => pane.show({ ...values }));
    },
    remember: () => change({ panes: replace({ ...pane.pane }) }),
    close: () => {
      const closed = state.panes[number].id;
      change({ panes: state.panes.filter((_, place) => place !== number) }, { push: true });
      showPanes();
      if (!state.panes.length) focusHit(closed);
    },
    compare: state.panes.length === 1 ? () => {
      change({ panes: [...state.panes, { ...state.panes[0] }] }, { push: true });
      showPanes({ focus: true });
    } : null,
  });
  return pane;
}

function focusHit(id) {
  const item = [...find("list").children].find((child) => child.dataset.id === id);
  (item?.querySelector("button") ?? find("phrase")).focus();
}

// Returns what `call` does, or shows why it failed.
async function attempt(call) {
  find("problem").hidden = true;
  find("login").hidden = true;
  try {
    return (await call()) ?? true;
  } catch (error) {
    if (error.name === "AbortError") return null;
    if (error.status === 401) {
      find("login").hidden = false;
      find("token").focus();
    } else {
      find("problem").textContent = error.status === undefined ? `The page failed: ${error.message}` : error.message;
      find("problem").hidden = false;
    }
    return null;
  }
}

function change(values, options) {
  state = { ...state, ...values };
  writeState(state, options);
}

function showForm() {
  find("phrase").value = state.phrases.join("\n");
  find("phrase").rows = Math.max(1, Math.min(6, state.phrases.length));
  find("alpha").value = String(state.alpha);
  find("alpha-value").textContent = formatScore(state.alpha);
  find("feedback").checked = state.feedback > 0;
  find("index").value = state.index;
  find("speaker").value = state.speaker;
  find("not").value = state.not;
}

function showIndexes() {
  const names = indexes.map((index) => index.name);
  if (state.index && !names.includes(state.index)) names.push(state.index);
  if (!state.index) state.index = names.includes("calls") ? "calls" : (names[0] ?? "");
  const options = names.map((name) => build("option", { value: name }, name));
  find("index").replaceChildren(...options);
  if (!names.length) find("status").textContent = "There is no index yet: hybrid-search ingest makes one.";
}

async function load() {
  const answer = await attempt(listIndexes);
  if (!answer) return;
  indexes = answer.indexes;
  await openJudging(answer.judgments, attempt);
  await follow();
}

async function follow() {
  state = readState();
  showIndexes();
  showForm();
  if (!state.phrases.length) {
    clearHits();
    find("welcome").hidden = false;
  }
  await Promise.all([search(), showPanes()]);
  document.body.dataset.ready = "true";
}

// Hits and an opened call stand side by side, as in style.css.
function isWide() {
  return matchMedia("(min-width: 70rem)").matches;
}

function submit() {
  const phrases = find("phrase").value.split("\n").map((line) => line.trim()).filter(Boolean);
  if (!phrases.length) {
    find("phrase").focus();
    return;
  }
  const panesLeft = isWide() ? state.panes : [];
  change({ phrases, panes: panesLeft }, { push: true });
  if (panesLeft.length !== panes.length) showPanes();
  search();
}

find("search").addEventListener("submit", (event) => {
  event.preventDefault();
  submit();
});
find("phrase").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.isComposing) return;
  if (event.shiftKey) find("phrase").rows = Math.min(6, find("phrase").value.split("\n").length + 1);
  else {
    event.preventDefault();
    submit();
  }
});
find("alpha").addEventListener("input", () => {
  state.alpha = Number(find("alpha").value);
  find("alpha-value").textContent = formatScore(state.alpha);
  if (candidates.passages.size) showHits();
});
find("alpha").addEventListener("change", () => {
  change({ alpha: Number(find("alpha").value) });
  search({ fresh: state.feedback > 0 }); // the second search depends on alpha
});
find("feedback").addEventListener("change", () => {
  change({ feedback: find("feedback").checked ? FEEDBACK : 0 });
  search();
});
for (const name of ["speaker", "not"]) {
  find(name).addEventListener("change", () => {
    change({ [name]: find(name).value.trim() });
    search();
  });
}
find("index").addEventListener("change", () => {
  change({ index: find("index").value, where: {}, panes: [] });
  showPanes();
  search();
});
find("more").addEventListener("click", () => {
  shown += SHOWN;
  showHits();
});
find("login").addEventListener("submit", (event) => {
  event.preventDefault();
  useToken(find("token").value);
  load();
});
new ResizeObserver(([{ target }]) => document.documentElement.style.setProperty("--top", `${target.offsetHeight}px`)).observe(find("top"));
addEventListener("popstate", follow);
addEventListener("hashchange", follow);
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && panes.length) panes.at(-1).options.close();
  if (event.key === "/" && !/^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName)) {
    event.preventDefault();
    find("phrase").focus();
  }
});
load();
