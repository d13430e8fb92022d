"""HTML of a result for notebooks: marked sentences and scores.

It looks like the inspector of `hybrid-search serve`. It loads nothing from elsewhere, and all text
from documents is escaped, with bidirectional control characters blanked.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from hybrid_search.observability.escapes import blank_controls
from hybrid_search.search.excerpts import Excerpt, list_excerpts
from hybrid_search.search.hit import Hit, Span, format_parts

MARK_STYLE = "background:#ffe08a;color:#1b2127;border-radius:2px;padding:0 1px"
TEXT_STYLE = "margin:2px 0 0;white-space:pre-wrap;overflow-wrap:anywhere"


def format_html(heading: Iterable[str], hits: Iterable[Hit]) -> str:
    """Return hits as an HTML list below the lines of `heading`."""
    head = "<br>".join(map(_encode, heading))
    items = "".join(f"<li style='margin:0 0 12px'>{_format_hit(hit)}</li>" for hit in hits)
    return (
        f"<div style='max-width:60em;line-height:1.5'><p>{head}</p>"
        f"<ol style='padding-left:2em'>{items}</ol></div>"
    )


def _format_hit(hit: Hit) -> str:
    reason = f", by {hit.phrase!r}" if hit.phrase is not None else ""
    heading = f"<b>{_encode(hit.id)}</b> {hit.score:.3f} {_soften(format_parts(hit) + reason)}"
    return f"{heading}{''.join(map(_format_excerpt, list_excerpts(hit)))}"


def _format_excerpt(excerpt: Excerpt) -> str:
    pieces = (
        f"<mark style='{MARK_STYLE}'>{_encode(text)}</mark>" if is_span else _encode(text)
        for text, is_span in excerpt.split()
    )
    before, after = ("… " if cut else "" for cut in (excerpt.is_cut_before, excerpt.is_cut_after))
    text = f"<p dir='auto' style='{TEXT_STYLE}'>{before}{''.join(pieces)}{after[::-1]}</p>"
    label = " · ".join(format_place(span) for span in excerpt.spans[:1])
    return f"<div>{_soften(label)}</div>{text}" if label else text


def format_place(span: Span) -> str:
    """Return the speaker, the time and the cosine of a span."""
    speaker = [span.speaker] if span.speaker else []
    time = [format_time(span.start_ms)] if span.start_ms is not None else []
    return "  ".join([*speaker, *time, f"{span.cosine:.3f}"])


def format_time(milliseconds: float) -> str:
    """Format a time of a call like the inspector: 00:55 or 1:02:03."""
    minutes, seconds = divmod(int(milliseconds // 1000), 60)
    hours, minutes = divmod(minutes, 60)
    clock = f"{minutes:02}:{seconds:02}"
    return f"{hours}:{clock}" if hours else clock


def _soften(text: str) -> str:
    # readable on light and dark notebook backgrounds
    return f"<span style='opacity:.75;font-size:90%'>{_encode(text)}</span>"


def _encode(text: str) -> str:
    return escape(blank_controls(text))
