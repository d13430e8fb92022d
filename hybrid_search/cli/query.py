"""The commands ``query`` and ``best-spans``: find phrases, and show matching words."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hybrid_search.cli import options
from hybrid_search.errors import InputError, UsageError
from hybrid_search.observability.escapes import blank_controls, escape_json
from hybrid_search.search import parameters
from hybrid_search.search.query import Query, QueryOptions, RequestOptions

if TYPE_CHECKING:
    from hybrid_search.client import Client
    from hybrid_search.search.result import Result

FORMATS = ("text", "json", "jsonl", "csv")


def query(
    phrase: Annotated[str, typer.Argument(help="What to look for.")],
    index: options.Index = Query.index,
    alpha: Annotated[
        float, typer.Option(help="Weight of the span cosine: 1 is spans only, 0 is BM25 only.")
    ] = Query.alpha,
    size: Annotated[int, typer.Option(help="Hits to show.")] = Query.size,
    offset: Annotated[int, typer.Option(help="Hits to leave out before them.")] = Query.offset,
    spans: Annotated[int, typer.Option(help="Spans to show of each hit.")] = Query.spans,
    spans_by: options.SpansBy = Query.spans_by,
    where: options.Where = None,
    fusion: Annotated[
        str, typer.Option(help="calibrated, min_max, l2, z_score or rrf.")
    ] = Query.fusion,
    context: options.Context = Query.context,
    speaker: options.Speaker = None,
    not_: options.Not = None,
    min_score: Annotated[
        float | None, typer.Option(help="Leave out hits with a lower fused score.")
    ] = Query.min_score,
    min_probability: Annotated[
        float | None,
        typer.Option(help="Show only spans that express the phrase with this probability."),
    ] = Query.min_probability,
    group_by: Annotated[str, typer.Option(help="document or passage.")] = Query.group_by,
    refine: Annotated[
        str | None,
        typer.Option(help="isolate: rank the shown spans again, each encoded by itself."),
    ] = Query.refine,
    feedback: Annotated[
        int,
        typer.Option(help="Search again with the best spans of so many documents: 10 is usual."),
    ] = Query.feedback,
    explain: Annotated[
        bool, typer.Option("--explain", help="Add the numbers that each score is made of.")
    ] = Query.explain,
    highlight: Annotated[
        bool, typer.Option("--highlight", help="Add the places of the words that BM25 matched.")
    ] = Query.highlight,
    sort: Annotated[
        str | None,
        typer.Option(
            help="A metadata field to order the fused documents by; -FIELD: the largest first."
        ),
    ] = Query.sort,
    facet: Annotated[
        list[str] | None,
        typer.Option(help="A metadata field whose values are counted; may be repeated."),
    ] = None,
    facets_over: Annotated[
        str,
        typer.Option(help="window (the fused documents) or matches (all in which a term occurs)."),
    ] = Query.facets_over,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Print the requests, in the form of the server's Dev Tools; search nothing.",
        ),
    ] = False,
    url: options.Url = None,
    model: options.Model = None,
    device: options.Device = None,
    precision: options.Precision = None,
    output_format: Annotated[
        str,
        typer.Option("--format", help="text, json, jsonl (a hit a line) or csv (a span a row)."),
    ] = "text",
    as_json: options.Json = False,
) -> None:
    """Find a phrase: documents by fused score, with the words that matched and their offsets."""
    with options.report_errors():
        from hybrid_search.api import connect

        form = _choose_format(output_format, as_json)
        request_options: RequestOptions = {
            "index": index,
            "alpha": alpha,
            "size": size,
            "where": options.parse_conditions(where),
            "fusion": fusion,
            "context": context,
            "offset": offset,
            "speaker": speaker,
            "not_": not_,
        }
        query_options: QueryOptions = {
            **request_options,
            "spans": spans,
            "spans_by": spans_by,
            "min_score": min_score,
            "min_probability": min_probability,
            "group_by": group_by,
            "refine": refine,
            "feedback": feedback,
            "explain": explain,
            "highlight": highlight,
            "sort": sort,
            "facets": facet or (),
            "facets_over": facets_over,
        }
        with connect(url, model=model, device=device, precision=precision) as client:
            if dry_run:
                _show_requests(client.requests(phrase, **request_options), form == "json")
                return
            result = client.query(phrase, **query_options)
            if not result.total and "warnings" not in result.plan:
                options.explain_nothing(client, index, *_list_narrowing(query_options, where))
        _write_result(result, form)


def _choose_format(name: str, as_json: bool) -> str:
    """Return the output format.

    Raises:
        UsageError: If it is unknown, or contradicts ``--json``.
    """
    parameters.check_choice("--format", name, FORMATS)
    if as_json and name not in ("text", "json"):
        raise UsageError(f"--format is {name!r} beside --json: leave one of them out")
    return "json" if as_json else name


def _list_narrowing(query_options: QueryOptions, where: Sequence[str] | None) -> list[str]:
    """Return the options that exclude hits, as given."""
    limits = {
        "--min-score": query_options["min_score"],
        "--min-probability": query_options["min_probability"],
    }
    return [
        *(f"--where {condition}" for condition in where or ()),
        *(f"--speaker {name}" for name in query_options["speaker"] or ()),
        *(f"--not {phrase!r}" for phrase in query_options["not_"] or ()),
        *(f"{name} {limit:g}" for name, limit in limits.items() if limit is not None),
    ]


def _write_result(result: Result, form: str) -> None:
    """Print a result in one of `FORMATS`."""
    if form == "json":
        options.print_json(result.to_dict())
    elif form == "jsonl":
        for hit in result:
            options.print_json(hit.to_dict())
    elif form == "csv":
        from hybrid_search.search.result_rows import format_csv

        print(blank_controls(format_csv(result.hits)), end="")
    else:
        from hybrid_search.cli.show_result import show_result

        show_result(result)


def best_spans(
    phrase: Annotated[str | None, typer.Argument(help="What to look for.")] = None,
    text: Annotated[str | None, typer.Option(help="The text to look in.")] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            help='JSONL instead: {"phrase", "text" or "turns"} a line, printed with "spans" added.'
        ),
    ] = None,
    k: Annotated[int, typer.Option(help="Spans to show; they do not overlap.")] = 1,
    context: options.Context = None,
    spans_by: options.SpansBy = Query.spans_by,
    speaker: options.Speaker = None,
    not_: options.Not = None,
    model: options.Model = None,
    device: options.Device = None,
    precision: options.Precision = None,
    as_json: options.Json = False,
) -> None:
    """Find the best spans of one text, without an index."""
    with options.report_errors():
        from hybrid_search.api import connect

        choice: dict[str, Any] = {"k": k, "spans_by": spans_by, "speaker": speaker, "not_": not_}
        with connect("memory:", model=model, device=device, precision=precision) as client:
            if file is not None and text is None and phrase is None:
                for answer in _answers(client, file, choice):
                    options.print_json(answer)
            elif phrase is not None and text is not None and file is None:
                spans = client.best_spans(phrase, text, context=context, **choice)
                if as_json:
                    options.print_json({"spans": [span.to_dict() for span in spans]})
                else:
                    from hybrid_search.cli.show_result import show_spans

                    show_spans(spans, text)
            else:
                raise UsageError("give a PHRASE with --text TEXT, or --file JSONL alone")


def _answers(client: Client, file: Path, choice: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield each line of `file` as a dict, with its spans added."""
    if not file.is_file():
        raise UsageError(f"file {file} does not exist")
    with file.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                answer = _answer(client, line, choice)
            except (ValueError, KeyError, TypeError, InputError) as error:
                raise UsageError(f'{file}:{number} is not {{"phrase", "text"}}: {error}') from error
            yield answer


def _answer(client: Client, line: bytes, choice: Mapping[str, Any]) -> dict[str, Any]:
    from hybrid_search.ingest.document_parser import build_object, refuse_constant

    row = json.loads(line, parse_constant=refuse_constant, object_pairs_hook=build_object)
    phrase, text = row["phrase"], row["turns"] if "turns" in row else row["text"]
    if not isinstance(phrase, str) or ("turns" not in row and not isinstance(text, str)):
        raise TypeError("both must be strings")
    spans = client.best_spans(phrase, text, **choice)
    return {**row, "spans": [span.to_dict() for span in spans]}


def _show_requests(requests: Sequence[tuple[str, dict[str, Any]]], as_json: bool) -> None:
    if as_json:
        options.print_json([{"path": path, "body": body} for path, body in requests])
        return
    for path, body in requests:
        print(f"POST {path}\n{escape_json(options.format_json(body, indent=2))}\n")
