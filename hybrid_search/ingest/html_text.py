"""Visible text of HTML, with a line for each paragraph, row or item."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html.parser import HTMLParser

Attributes = Sequence[tuple[str, str | None]]

BLOCKS = frozenset(
    {
        *("address", "article", "aside", "blockquote", "body", "br", "center", "dd", "div", "dl"),
        *("dt", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "html"),
        *("li", "main", "nav", "ol", "p", "pre", "section", "table", "tbody", "td", "tfoot"),
        *("th", "thead", "tr", "ul"),
    }
)
"""Tags that start a new line."""

SILENT = frozenset({"head", "script", "style", "template", "title"})
"""Tags with invisible content."""

INLINE = frozenset(
    {
        *("a", "abbr", "b", "big", "cite", "code", "col", "colgroup", "em", "font", "i", "img"),
        *("input", "ins", "kbd", "label", "link", "mark", "meta", "s", "small", "span", "strike"),
        *("strong", "sub", "sup", "tt", "u"),
    }
)
TAGS = BLOCKS | SILENT | INLINE
"""All recognized tags. Other names in angle brackets, such as mail addresses, are kept."""

_HTML = re.compile(rf"</?(?:{'|'.join(sorted(TAGS))})(?:\s[^<>]*)?/?>", re.IGNORECASE)
_BLOCK = re.compile(rf"</?(?:{'|'.join(sorted(BLOCKS))})(?:\s[^<>]*)?/?>", re.IGNORECASE)
_BLANKS = re.compile(r"[ \t\f\xa0]+")
_LINES = re.compile(r" ?\n[ \n]*")


def has_html(text: str) -> bool:
    """Return whether a text has HTML tags."""
    return "<" in text and _HTML.search(text) is not None


def strip_html(text: str, *, quotes: bool = False) -> str:
    """Return the visible text of HTML, with a line for each paragraph, row or item.

    If it has no paragraphs or breaks, its line breaks are kept. With `quotes` the content of
    ``blockquote`` is left out too.
    """
    reader = _HtmlReader(SILENT | {"blockquote"} if quotes else SILENT)
    reader.feed(re.sub(r"\s+", " ", text) if _BLOCK.search(text) else text)
    reader.close()
    seen = _BLANKS.sub(" ", "".join(reader.pieces))
    return _LINES.sub("\n", seen).strip()


class _HtmlReader(HTMLParser):
    """A parser that collects the text outside `hidden` tags."""

    def __init__(self, hidden: frozenset[str]) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self._hidden, self._depth = hidden, 0

    def handle_starttag(self, tag: str, attrs: Attributes) -> None:  # noqa: ARG002
        if tag in self._hidden:
            self._depth += 1
        self._add_tag(tag, self.get_starttag_text() or "")

    def handle_startendtag(self, tag: str, attrs: Attributes) -> None:  # noqa: ARG002
        self._add_tag(tag, self.get_starttag_text() or "")

    def handle_endtag(self, tag: str) -> None:
        if tag in self._hidden:
            self._depth = max(0, self._depth - 1)
        self._add_tag(tag, f"</{tag}>")

    def handle_data(self, data: str) -> None:
        if not self._depth:
            self.pieces.append(data)

    def _add_tag(self, tag: str, written: str) -> None:
        self.handle_data("\n" if tag in BLOCKS else "" if tag in TAGS else written)
