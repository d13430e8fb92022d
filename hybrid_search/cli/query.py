"""``query`` and ``best-spans``: phrases found, with the words that matched."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from hybrid_search.cli import options
from hybrid_search.client import Client
from hybrid_search.config import DEFAULT_INDEX
from hybrid_search.errors import UsageError
from hybrid_search.search.fusion import DEFAULT
from hybrid_search.search.result import Result, Span, format_span

MARK = "bold black on yellow"
CONTROLS = dict.fromkeys([*range(9), *range(11, 32), 127], " ")
"""Characters that a terminal obeys; rich leaves some out, which would move what is marked behind
them.
"""


def query(
    phrase: Annotated[str, typer.Argument(help="What to look for.")],
    index: options.Index = DEFAULT_INDEX,
    alpha: Annotated[
        float, typer.Option(help="Weight of the span cosine: 1 is spans only, 0 is BM25 only.")
    ] = 0.5,
    size: Annotated[int, typer.Option(help="Hits to show.")] = 10,
    offset: Annotated[int, typer.Option(help="Hits to leave out before them.")] = 0,
    spans: Annotated[int, typer.Option(help="Spans to show of each hit.")] = 3,
    where: Annotated[
        list[str] | None,
        typer.Option(help="KEY=VALUE that the metadata must have; may be repeated."),
    ] = None,
    fusion: Annotated[str, typer.Option(help="calibrated, min_max, l2, z_score or rrf.")] = DEFAULT,
    context: options.Context = None,
    min_score: Annotated[
        float | None, typer.Option(help="Leave out hits with a lower fused score.")
    ] = None,
    group_by: Annotated[str, typer.Option(help="document or passage.")] = "document",
    refine: Annotated[
        str | None,
        typer.Option(help="isolate: rank the shown spans again, each encoded by itself."),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Add what each score is made of.")
    ] = False,
    highlight: Annotated[
        bool, typer.Option("--highlight", help="Add the places of the words that BM25 matched.")
    ] = False,
    sort: Annotated[
        str | None,
        typer.Option(
            help="A metadata field to order the fused documents by; -FIELD: the largest first."
        ),
    ] = None,
    facet: Annotated[
        list[str] | None,
        typer.Option(help="A metadata field whose values are counted; may be repeated."),
    ] = None,
    facets_over: Annotated[
        str,
        typer.Option(help="window (the fused documents) or matches (all in which a term occurs)."),
    ] = "window",
    compat: Annotated[
        str | None, typer.Option(help="opensearch: rank as that server's own hybrid query does.")
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Print the requests as the server's Dev Tools take them; search nothing.",
        ),
    ] = False,
    url: options.Url = None,
    model: options.Model = None,
    device: options.Device = None,
    precision: options.Precision = None,
    as_json: options.Json = False,
) -> None:
    """Find a phrase: documents by fused score, with the words that matched and their offsets."""
    with options.report_errors():
        from hybrid_search.api import connect

        request_options: dict[str, Any] = {
            "index": index,
            "alpha": alpha,
            "size": size,
            "offset": offset,
            "fusion": fusion,
            "context": context,
            "compat": compat,
        }
        request_options["where"] = options.parse_conditions(where)
        with connect(url, model=model, device=device, precision=precision) as client:
            if dry_run:
                _show_requests(client.requests(phrase, **request_options), as_json)
                return
            result = client.query(
                phrase,
                **request_options,
                spans=spans,
                min_score=min_score,
                group_by=group_by,
                refine=refine,
                explain=explain,
                highlight=highlight,
                sort=sort,
                facets=facet or (),
                facets_over=facets_over,
            )
        if as_json:
            options.print_json(result.to_dict())
        else:
            _show(result)


def best_spans(
    phrase: Annotated[str | None, typer.Argument(help="What to look for.")] = None,
    text: Annotated[str | None, typer.Option(help="The text to look in.")] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            help='JSONL instead: {"phrase", "text"} a line, answered by the line with "spans" added.'
        ),
    ] = None,
    k: Annotated[int, typer.Option(help="Spans to show, none overlapping another.")] = 1,
    context: options.Context = None,
    model: options.Model = None,
    device: options.Device = None,
    precision: options.Precision = None,
    as_json: options.Json = False,
) -> None:
    """The best spans of one text, with no index."""
    with options.report_errors():
        from hybrid_search.api import connect

        with connect("memory:", model=model, device=device, precision=precision) as client:
            if file is not None and text is None and phrase is None:
                for answer in _answers(client, file, k):
                    options.print_json(answer)
            elif phrase is not None and text is not None and file is None:
                _show_spans(client.best_spans(phrase, text, k=k, context=context), text, as_json)
            else:
                raise UsageError("give a PHRASE with --text TEXT, or --file JSONL alone")


def _answers(client: Client, file: Path, k: int) -> Iterator[dict[str, Any]]:
    if not file.is_file():
        raise UsageError(f"file {file} does not exist")
    with file.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
                phrase, text = row["phrase"], row["text"]
                if not isinstance(phrase, str) or not isinstance(text, str):
                    raise TypeError("both are strings")
                spans = client.best_spans(phrase, text, k=k)
            except (ValueError, KeyError, TypeError) as error:
                raise UsageError(f'{file}:{number} is not {{"phrase", "text"}}: {error}') from error
            yield {**row, "spans": [span.to_dict() for span in spans]}


def _show_spans(spans: list[Span], text: str, as_json: bool) -> None:
    if as_json:
        options.print_json({"spans": [span.to_dict() for span in spans]})
        return
    console = options.Output()
    for span in spans:
        console.print(
            Text.assemble(
                f"{span.cosine:.3f} [{span.start}:{span.end}] ", _mark_spans(text, 0, [span])
            )
        )


def _show_requests(requests: Sequence[tuple[str, dict[str, Any]]], as_json: bool) -> None:
    if as_json:
        options.print_json([{"path": path, "body": body} for path, body in requests])
        return
    for path, body in requests:
        print(f"POST {path}\n{json.dumps(body, ensure_ascii=False, indent=2)}\n")


def _show(result: Result) -> None:
    console = options.Output()
    console.print(f"{len(result)} of {result.total} hits")
    for number, hit in enumerate(result, 1):
        scores = f"  score {hit.score:.3f}  (BM25 {hit.bm25:.2f}, cosine {hit.cosine:.3f})"
        console.print(Text.assemble((f"\n{number}. {hit.id}", "bold"), scores))
        for span in hit.spans:
            console.print(Text(f"   {format_span(span)}".translate(CONTROLS)))
        console.print(_mark_spans(hit.text, hit.start, hit.spans, hit.highlights or ()))
    for name, counts in (result.facets or {}).items():
        console.print(
            Text(f"\n{name}: " + ", ".join(f"{value} ({count})" for value, count in counts.items()))
        )


def _mark_spans(
    text: str, start: int, spans: Sequence[Span], words: Sequence[tuple[int, int]] = ()
) -> Text:
    """A text that begins at `start` of its document, with those of `spans` marked that are in it,
    `words` underlined.

    No markup: texts may look like it.
    """
    marked_text = Text(text.translate(CONTROLS))
    for first, last in words:
        marked_text.stylize("underline", first - start, last - start)
    for span in spans:
        if start <= span.start and span.end <= start + len(text):
            marked_text.stylize(MARK, span.start - start, span.end - start)
    return marked_text
