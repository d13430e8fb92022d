// The service counts code points, JavaScript counts UTF-16 units: an emoji is one there, two here.

export class CodePoints {
  constructor(text, start = 0) {
    this.text = text;
    this.start = start;
    this.units = /[\ud800-\udbff]/.test(text) ? mapCodePoints(text) : null;
    this.end = start + (this.units ? this.units.length - 1 : text.length);
  }

  slice(from, to) {
    return this.text.slice(this.unit(from), this.unit(to));
  }

  unit(offset) {
    const place = Math.min(Math.max(offset, this.start), this.end) - this.start;
    return this.units ? this.units[place] : place;
  }
}

function mapCodePoints(text) {
  const units = [];
  let unit = 0;
  for (const character of text) {
    units.push(unit);
    unit += character.length;
  }
  units.push(unit);
  return units;
}
