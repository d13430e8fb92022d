// Offers the values of metadata fields as filters, with the number of calls that have them.

import { build } from "./dom.js";

const FIELDS = 12; // fields that are counted
const VALUES = 10; // values of a field that are offered

export function chooseFields(index) {
  const fields = Object.entries(index?.fields ?? {});
  return fields.filter(([, type]) => type !== "number" && type !== "object").map(([name]) => name).slice(0, FIELDS);
}

export function buildFilters(facets, where, change) {
  const groups = Object.entries(facets ?? {})
    .filter(([name, counts]) => where[name] || isUseful(counts))
    .map(([name, counts]) => buildGroup(name, counts, where[name] ?? [], change));
  if (!groups.length) return [];
  const isOpen = Object.keys(where).length > 0 || matchMedia("(min-width: 44rem)").matches;
  return [build("details", { open: isOpen }, build("summary", {}, "Filters"), build("small", {}, "Calls among all ranked passages"), build("div", { class: "groups" }, groups))];
}

// Titles and dates, of which each call has its own, are no filters.
function isUseful(counts) {
  return counts.length > 1 && counts.length <= 2 * VALUES && counts[0][1] > 1;
}

function buildGroup(name, counts, wanted, change) {
  const values = counts.slice(0, VALUES);
  for (const value of wanted) {
    if (!values.some(([other]) => other === value)) values.push([value, 0]);
  }
  const choices = values.map(([value, count]) => {
    const box = build("input", { type: "checkbox" });
    box.checked = wanted.includes(value);
    box.addEventListener("change", () => {
      const others = wanted.filter((other) => other !== value);
      change(name, box.checked ? [...others, value] : others);
    });
    return build("label", {}, box, build("bdi", {}, String(value)), build("span", { class: "count" }, String(count)));
  });
  return build("fieldset", {}, build("legend", {}, build("bdi", {}, name)), choices);
}
