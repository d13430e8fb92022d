// Cuts a text at the edges of marks, and builds an element for each piece that has one.

import { build } from "./dom.js";

// `marks` are {start, end, kind}, in code points; those of one kind do not overlap.
export function markText(points, from, to, marks) {
  const inside = marks
    .map((mark) => ({ ...mark, start: Math.max(mark.start, from), end: Math.min(mark.end, to) }))
    .filter((mark) => mark.start < mark.end);
  const edges = new Set([from, to]);
  for (const mark of inside) edges.add(mark.start).add(mark.end);
  const sorted = [...edges].sort((first, second) => first - second);
  const opening = new Map();
  for (const mark of inside) {
    if (!opening.has(mark.start)) opening.set(mark.start, []);
    opening.get(mark.start).push(mark);
  }
  const pieces = [];
  let open = [];
  for (let number = 0; number + 1 < sorted.length; number += 1) {
    const [start, end] = [sorted[number], sorted[number + 1]];
    open = open.filter((mark) => mark.end > start).concat(opening.get(start) ?? []);
    pieces.push(wrap(points.slice(start, end), open));
  }
  return pieces;
}

function wrap(text, marks) {
  const kinds = new Map(marks.map((mark) => [mark.kind, mark]));
  let node = document.createTextNode(text);
  if (kinds.has("term")) node = build("b", { class: "term" }, node);
  if (kinds.has("heat")) node = build("span", { class: `heat heat-${kinds.get("heat").level}` }, node);
  const span = kinds.get("span");
  if (span) node = build("mark", { "data-span": span.number, tabindex: span.first && span.number != null ? -1 : null }, node);
  return node;
}
