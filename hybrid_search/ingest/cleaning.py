"""Cleaning of document texts before they are indexed.

Offsets refer to the cleaned text, which is what the index stores. Queries import this module, so
libraries for cleaning are imported only on use.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Cleaning:
    """The parts to remove from the texts of documents.

    Attributes:
        html: HTML tags and invisible content; entities such as ``&amp;`` are decoded.
        quotes: Quoted earlier mails, and the signature.
    """

    html: bool = False
    quotes: bool = False

    def clean_document(self, document: dict[str, Any]) -> dict[str, Any]:
        """Return a document with its text, or the texts of its turns, cleaned."""
        if not (self.html or self.quotes):
            return document
        cleaned = dict(document)
        if isinstance(document.get("text"), str):
            cleaned["text"] = self.clean_text(document["text"])
        if isinstance(document.get("turns"), list):
            cleaned["turns"] = [self._clean_turn(turn) for turn in document["turns"]]
        return cleaned

    def clean_text(self, text: str) -> str:
        """Return the cleaned text."""
        from hybrid_search.ingest.html_text import has_html, strip_html
        from hybrid_search.ingest.quoted_mail import strip_quotes

        if self.html and has_html(text):
            text = strip_html(text, quotes=self.quotes)
        return strip_quotes(text) if self.quotes else text

    def _clean_turn(self, turn: Any) -> Any:
        """Return the cleaned turn; word times are dropped if its text changed."""
        text = turn.get("text") if isinstance(turn, dict) else None
        if not isinstance(text, str) or (cleaned_text := self.clean_text(text)) == text:
            return turn
        others = {key: value for key, value in turn.items() if key != "word_times"}
        return {**others, "text": cleaned_text}


NOTHING = Cleaning()
"""No cleaning."""
