"""Find the numbers in a text that are written in digits, with their currency or percent mark.

``£1.50``, ``1,200 dollars``, ``1.200,50 €`` and ``20 %`` are found. Numbers in words, and digits
that are part of a name, a date, a time or a longer code, are not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

UNITS = {
    **dict.fromkeys(("$", "dollar", "dollars", "usd"), "$"),
    **dict.fromkeys(("£", "pound", "pounds", "quid", "gbp"), "£"),
    **dict.fromkeys(("€", "euro", "euros", "eur"), "€"),
    **dict.fromkeys(("%", "percent", "per cent"), "%"),
}
"""The unit that each mark or word before or after a number stands for."""

_NUMBER = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d{1,3}(?:\.\d{3})+,\d+|\d+(?:[.,]\d+)?"
_WORDS = "|".join(sorted((unit for unit in UNITS if unit.isalpha() or " " in unit), key=len))
_AMOUNT = re.compile(
    rf"(?:(?P<before>[$£€])\s?|(?<![\w.,:/-]))(?P<number>{_NUMBER})"
    rf"(?:\s?(?P<mark>[$£€%])|\s(?P<word>{_WORDS})\b|(?![\w:/-]|[.,]\d))",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Amount:
    """A number in a text; its own text, with the mark, begins at `start`."""

    number: float
    unit: str
    text: str
    start: int


def find_amounts(text: str) -> Iterator[Amount]:
    """Yield the numbers of a text in their order.

    A comma before exactly three digits, with nothing but such groups before it, parts thousands; a
    lone point is always a decimal point.
    """
    for match in _AMOUNT.finditer(text):
        sign = match["before"] or match["mark"] or match["word"] or ""
        yield Amount(
            parse_number(match["number"]), UNITS.get(sign.lower(), ""), match[0], match.start()
        )


def parse_number(digits: str) -> float:
    """Return the number that these digits, points and commas are."""
    if re.fullmatch(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?", digits):
        return float(digits.replace(",", ""))
    if "," in digits:
        return float(digits.replace(".", "").replace(",", "."))
    return float(digits)
