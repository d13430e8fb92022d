// What is seen, as the part of the address behind "#", which browsers never send to a server.

export const ALPHA = 0.5;
export const FEEDBACK = 10; // documents whose best spans a second search asks with

export function readState() {
  const values = new URLSearchParams(location.hash.slice(1));
  const alpha = values.get("alpha");
  return {
    phrases: values.getAll("q").filter((phrase) => phrase.trim()),
    index: values.get("index") ?? "",
    alpha: alpha === null ? ALPHA : readAlpha(alpha),
    feedback: values.get("feedback") === String(FEEDBACK) ? FEEDBACK : 0,
    where: readFilters(values.getAll("where")),
    speaker: (values.get("speaker") ?? "").trim(),
    not: (values.get("not") ?? "").trim(),
    panes: readPanes(values),
  };
}

export function writeState(state, { push = false } = {}) {
  const values = new URLSearchParams();
  for (const phrase of state.phrases) values.append("q", phrase);
  if (state.index) values.set("index", state.index);
  if (state.alpha !== ALPHA) values.set("alpha", state.alpha);
  if (state.feedback) values.set("feedback", state.feedback);
  if (state.speaker) values.set("speaker", state.speaker);
  if (state.not) values.set("not", state.not);
  for (const [field, wanted] of Object.entries(state.where)) {
    for (const value of wanted) values.append("where", JSON.stringify([field, value]));
  }
  for (const pane of state.panes) {
    const place = pane.index ? [pane.index] : [];
    values.append("open", JSON.stringify([pane.id, pane.phrase, pane.alpha, ...place]));
  }
  const hash = values.size ? `#${values}` : "";
  if (hash === location.hash) return;
  const address = location.pathname + hash;
  if (push) history.pushState(null, "", address);
  else history.replaceState(null, "", address);
}

function readAlpha(text) {
  const alpha = Number(text);
  return alpha >= 0 && alpha <= 1 ? alpha : ALPHA;
}

function readFilters(texts) {
  const where = {};
  for (const [field, value] of texts.map(parseList)) {
    if (typeof field === "string") (where[field] ??= []).push(value);
  }
  return where;
}

function readPanes(values) {
  return values
    .getAll("open")
    .map(parseList)
    .filter(([id]) => typeof id === "string")
    .slice(0, 2)
    .map(([id, phrase, alpha, index]) => ({ id, phrase: String(phrase ?? ""), alpha: readAlpha(alpha), index: String(index ?? "") }));
}

function parseList(text) {
  try {
    const value = JSON.parse(text);
    return Array.isArray(value) ? value : [];
  } catch {
    return [];
  }
}
