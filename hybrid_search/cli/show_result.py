"""Output of hits, spans and documents for people, with matching words marked.

On a terminal they are marked by colours. Without colours, in a pipe or with ``NO_COLOR``, they are
in brackets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from hybrid_search.cli import options
from hybrid_search.observability.escapes import blank_controls, escape_controls
from hybrid_search.search.excerpts import Excerpt, list_excerpts
from hybrid_search.search.hit import Hit, Span, format_parts
from hybrid_search.search.result import Result

if TYPE_CHECKING:
    from hybrid_search.search.hit import DocumentView
    from hybrid_search.search.quote import QuoteCheck
    from hybrid_search.topics.match import Match
    from hybrid_search.topics.surroundings import Surroundings
    from hybrid_search.topics.topic import Topic

MARK = "bold black on yellow"
INDENT = "   "
"""The indent of the lines of a hit."""


def show_spans(spans: Sequence[Span], text: str) -> None:
    """Print the spans of one text, each marked in its context."""
    console = options.open_output()
    for span in spans:
        label = f"{span.cosine:.3f} [{span.start}:{span.end}] "
        excerpt = Excerpt(0, text, (span,))
        console.print(Text.assemble(label, _mark(excerpt, is_plain=_is_plain(console))))


def show_result(result: Result) -> None:
    """Print the hits of a query with the sentences around their spans, and its facets."""
    console = options.open_output()
    for line in result.describe():
        console.print(line)
    for number, hit in enumerate(result, 1):
        scores = f"  score {hit.score:.3f}  ({format_parts(hit)})"
        heading = Text.assemble((f"{number}. {escape_controls(hit.id)}", "bold"), scores)
        console.print()
        _print_wrapped(console, heading)
        for lines in _describe_hit(console, hit):
            _print_wrapped(console, lines, INDENT)
    for name, counts in (result.facets or {}).items():
        values = ", ".join(f"{value} ({count})" for value, count in counts.items())
        console.print(Text(f"\n{escape_controls(f'{name}: {values}')}"))


def _print_wrapped(console: Console, lines: Text, indent: str = "") -> None:
    """Print lines, wrapped to the window behind an indent."""
    for line in lines.wrap(console, max(console.width - len(indent), 1)):
        line.rstrip()
        console.print(Text.assemble(indent, line))


def _describe_hit(console: Console, hit: Hit) -> Iterator[Text]:
    """Yield each excerpt of a hit, after the places of its spans."""
    is_plain = _is_plain(console)
    for excerpt in list_excerpts(hit):
        if excerpt.spans:
            places = "  ".join(map(_format_place, excerpt.spans))
            speaker = excerpt.spans[0].speaker
            label = f"{escape_controls(speaker)}  {places}" if speaker else places
            yield Text(label, style="dim")
        yield _mark(excerpt, hit.highlights or (), is_plain=is_plain)


def _format_place(span: Span) -> str:
    """Return the time of a span, if known, its cosine and its offsets."""
    time = _format_time(span.start_ms)
    place = f"{span.cosine:.3f} [{span.start}:{span.end}]"
    return f"{time} {place}" if time else place


def show_quote(check: QuoteCheck) -> None:
    """Print each place of a quotation, or what comes nearest to it."""
    console = options.open_output()
    if check.found:
        count = len(check.places)
        more = "" if check.complete else " and perhaps more"
        console.print(f"found at {count} place{'s' * (count > 1)}{more}")
    else:
        where = "" if check.complete else " in what can be read"
        console.print(f"nobody said it{where}; what comes nearest:")
    for place in check.places or check.nearest:
        where = f"{place.id} [{place.start}:{place.end}]"
        parts = (where, _format_time(place.start_ms), place.speaker)
        label = escape_controls("  ".join(filter(None, parts)))
        line = Text.assemble((label, "dim"), "  ", blank_controls(place.text))
        _print_wrapped(console, line, INDENT)


def show_document(view: DocumentView) -> None:
    """Print a document: its metadata, and its turns with their spans marked."""
    console = options.open_output()
    console.print(Text(escape_controls(view.id), style="bold"))
    for name, value in view.metadata.items():
        console.print(Text(escape_controls(f"{name}: {_format_value(value)}"), style="dim"))
    console.print()
    for turn in view.turns:
        spans = tuple(span for span in view.spans if turn.start <= span.start < turn.end)
        excerpt = Excerpt(turn.start, view.text[turn.start : turn.end], spans)
        label = "".join(f"{part}  " for part in (_format_time(turn.start_ms), turn.speaker) if part)
        text = _mark(excerpt, is_plain=_is_plain(console))
        _print_wrapped(console, Text.assemble((escape_controls(label), "bold"), text))
    for span in view.spans:
        console.print(f"{span.cosine:.3f} [{span.start}:{span.end}]", style="dim")


def _format_value(value: object) -> str:
    return value if isinstance(value, str) else options.format_json(value)


def _format_time(milliseconds: int | None) -> str:
    """Format a time from the start of a call as 1:02:03 or 2:03; "" without a time."""
    if milliseconds is None:
        return ""
    minutes, seconds = divmod(milliseconds // 1000, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def _is_plain(console: Console) -> bool:
    """Return whether colours are unavailable, so that brackets mark matches."""
    return console.no_color or not console.is_terminal


def _mark(
    excerpt: Excerpt, words: Sequence[tuple[int, int]] = (), *, is_plain: bool = False
) -> Text:
    """Return an excerpt with its spans marked and `words` underlined; in plain text by brackets.

    Styles are not applied by rich's markup, because text may look like markup.
    """
    text = Text()
    for piece, is_span in excerpt.split():
        visible = blank_controls(piece)
        if is_span and is_plain:
            text.append(f"[{visible}]")
        else:
            text.append(visible, style=MARK if is_span else None)
    if not is_plain:
        for first, last in words:
            if excerpt.start <= first and last <= excerpt.end:
                text.stylize("underline", first - excerpt.start, last - excerpt.start)
    before, after = ("..." if cut else "" for cut in (excerpt.is_cut_before, excerpt.is_cut_after))
    return Text.assemble(f"{before} " if before else "", text, f" {after}" if after else "")


def show_match(
    match: Match,
    topic: Topic,
    around: Surroundings,
    neighbours: tuple[str, str],
    probability: float,
) -> None:
    """Print a span that may be a mention of a topic, marked in its turn between its neighbours."""
    console = options.open_output()
    speaker = f"  {match.speaker}" if match.speaker else ""
    title = escape_controls(f"{match.topic}?  {match.id}{speaker}")
    console.print(Text.assemble(f"\n{probability:.2f}  ", (title, "bold")))
    meant = f"means: {' | '.join(topic.phrases)}"
    not_meant = f"  not: {' | '.join(topic.not_phrases)}" if topic.not_phrases else ""
    console.print(Text(escape_controls(meant + not_meant), style="dim"))
    turn = Text(blank_controls(str(around)))
    first = len(around.before)
    turn.stylize(MARK, first, first + len(around.text))
    if _is_plain(console):
        turn = Text(blank_controls(f"{around.before}[{around.text}]{around.after}"))
    before, after = (Text(blank_controls(text), style="dim") for text in neighbours)
    for line in filter(None, (before, turn, after)):
        console.print(line)
