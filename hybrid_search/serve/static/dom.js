// Builds elements. Text only ever becomes a text node, so that no transcript is taken for markup.

export function build(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, String(value));
  }
  element.append(...children.flat().filter((child) => child != null && child !== ""));
  return element;
}

export function find(id) {
  return document.getElementById(id);
}

export function formatTime(milliseconds) {
  if (milliseconds == null) return "";
  const seconds = Math.floor(milliseconds / 1000);
  const minutes = Math.floor(seconds / 60);
  const hours = Math.floor(minutes / 60);
  const two = (number) => String(number).padStart(2, "0");
  const clock = `${two(minutes % 60)}:${two(seconds % 60)}`;
  return hours ? `${hours}:${clock}` : clock;
}

export function formatScore(score, digits = 2) {
  return Number(score).toFixed(digits);
}
