"""Show the answers of ``query`` and ``best-spans`` to people: the words that matched are marked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from hybrid_search.cli import options
from hybrid_search.observability.escapes import blank_controls, escape_controls
from hybrid_search.search.result import Result, Span, format_span

if TYPE_CHECKING:
    from hybrid_search.phrases.match import Match
    from hybrid_search.phrases.surroundings import Surroundings

MARK = "bold black on yellow"


def show_spans(spans: Sequence[Span], text: str) -> None:
    """Print the spans of one text, each marked in it."""
    console = options.open_output()
    for span in spans:
        label = f"{span.cosine:.3f} [{span.start}:{span.end}] "
        console.print(Text.assemble(label, _mark_spans(text, 0, [span])))


def show_result(result: Result) -> None:
    """Print the hits of a query with their spans, and its facets."""
    console = options.open_output()
    console.print(f"{len(result)} of {result.total} hits")
    for number, hit in enumerate(result, 1):
        scores = f"  score {hit.score:.3f}  (BM25 {hit.bm25:.2f}, cosine {hit.cosine:.3f})"
        console.print(Text.assemble((f"\n{number}. {escape_controls(hit.id)}", "bold"), scores))
        for span in hit.spans:
            console.print(Text(f"   {blank_controls(format_span(span))}"))
        console.print(_mark_spans(hit.text, hit.start, hit.spans, hit.highlights or ()))
    for name, counts in (result.facets or {}).items():
        values = ", ".join(f"{value} ({count})" for value, count in counts.items())
        console.print(Text(f"\n{escape_controls(f'{name}: {values}')}"))


def _mark_spans(
    text: str, start: int, spans: Sequence[Span], words: Sequence[tuple[int, int]] = ()
) -> Text:
    """Return a text with `spans` marked and `words` underlined; spans outside it are left out.

    `start` is where the text begins in its document. Styles are not made by rich's markup, which a
    text may look like.
    """
    marked_text = Text(blank_controls(text))
    for first, last in words:
        marked_text.stylize("underline", first - start, last - start)
    for span in spans:
        if start <= span.start and span.end <= start + len(text):
            marked_text.stylize(MARK, span.start - start, span.end - start)
    return marked_text


def show_match(match: Match, around: Surroundings, probability: float) -> None:
    """Print a span that may be a mention of a topic, marked in its turn."""
    console = options.open_output()
    speaker = f"  {match.speaker}" if match.speaker else ""
    title = escape_controls(f"{match.topic}?  {match.id}{speaker}")
    console.print(Text.assemble(f"\n{probability:.2f}  ", (title, "bold")))
    turn = Text(blank_controls(str(around)))
    first = len(around.before)
    turn.stylize(MARK, first, first + len(around.text))
    if not console.is_terminal:  # styles are not seen in a file or a pipe
        turn = Text(blank_controls(f"{around.before}[{around.text}]{around.after}"))
    console.print(turn)
