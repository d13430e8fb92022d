"""The commands ``query``, ``best-spans``, ``check-quote`` and ``show``: find and show words."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Unpack

import typer

from hybrid_search.api import connect
from hybrid_search.cli import options
from hybrid_search.config import DEFAULT_INDEX, ModelOptions
from hybrid_search.errors import InputError, UsageError
from hybrid_search.observability.escapes import blank_controls, escape_json
from hybrid_search.parameters import check_choice
from hybrid_search.search.query import DOCUMENT_SPANS, PARAMETERS, QueryOptions, SpanOptions
from hybrid_search.search.quote import QuoteOptions

if TYPE_CHECKING:
    from hybrid_search.client import Client
    from hybrid_search.search.result import Result

FORMATS = ("text", "json", "jsonl", "csv")


def query(
    call: typer.Context,
    phrase: Annotated[str, typer.Argument(help="What to look for.")],
    *,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Print the requests, in the form of the server's Dev Tools; search nothing.",
        ),
    ] = False,
    output_format: Annotated[
        str,
        typer.Option("--format", help="text, json, jsonl (a hit a line) or csv (a span a row)."),
    ] = "text",
    as_json: options.Json = False,
    place: options.Place,
    **query_options: Unpack[QueryOptions],
) -> None:
    """Find a phrase: documents by fused score, with the words that matched and their offsets."""
    form = _choose_format(output_format, as_json)
    with connect(**place) as client:
        if dry_run:
            _show_requests(client.requests(phrase, **query_options), form == "json")
            return
        result = client.query(phrase, **query_options)
        if not result.total and "warnings" not in result.plan:
            narrowing = _list_narrowing(call.params)
            options.explain_nothing(client, query_options["index"], *narrowing)
    _write_result(result, form)


def _choose_format(name: str, as_json: bool) -> str:
    """Return the output format; raise UsageError if it is unknown or contradicts ``--json``."""
    check_choice("--format", name, FORMATS)
    if as_json and name not in ("text", "json"):
        raise UsageError(f"--format is {name!r} beside --json: leave one of them out")
    return "json" if as_json else name


def _list_narrowing(given: Mapping[str, Any]) -> Iterator[str]:
    """Yield the options that leave out hits, as given."""
    for name, parameter in PARAMETERS.items():
        values = given[name]
        if not parameter.narrows or values in (None, parameter.default):
            continue
        for value in values if isinstance(values, list | tuple) else (values,):
            text = f"{value:g}" if isinstance(value, float) else str(value)
            yield f"{parameter.option_name} {shlex.quote(text)}"


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
    text: Annotated[str | None, typer.Option(help="The text to look in.", metavar="TEXT")] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            help='JSONL instead: {"phrase", "text" or "turns"} a line, printed with "spans" added.'
        ),
    ] = None,
    *,
    model: ModelOptions,
    as_json: options.Json = False,
    **choice: Unpack[SpanOptions],
) -> None:
    """Find the best spans of one text, without an index."""
    with connect("memory:", **model) as client:
        if file is not None and text is None and phrase is None:
            for answer in _answers(client, file, choice):
                options.print_json(answer)
        elif phrase is not None and text is not None and file is None:
            spans = client.best_spans(phrase, text, **choice)
            if as_json:
                options.print_json({"spans": [span.to_dict() for span in spans]})
            else:
                from hybrid_search.cli.show_result import show_spans

                show_spans(spans, text)
        else:
            raise UsageError("give a PHRASE with --text TEXT, or --file JSONL alone")


def _answers(client: Client, file: Path, choice: SpanOptions) -> Iterator[dict[str, Any]]:
    """Yield each line of `file` as a dict, with its spans added."""
    if not file.is_file():
        raise UsageError(f"file {file} does not exist: check the name")
    with file.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                answer = _answer(client, line, choice)
            except (ValueError, KeyError, TypeError, InputError) as error:
                raise UsageError(f'{file}:{number} is not {{"phrase", "text"}}: {error}') from error
            yield answer


def _answer(client: Client, line: bytes, choice: SpanOptions) -> dict[str, Any]:
    from hybrid_search.ingest.document_parser import build_object, refuse_constant

    row = json.loads(line, parse_constant=refuse_constant, object_pairs_hook=build_object)
    phrase, text = row["phrase"], row["turns"] if "turns" in row else row["text"]
    if not isinstance(phrase, str) or ("turns" not in row and not isinstance(text, str)):
        raise TypeError("both must be strings")
    spans = client.best_spans(phrase, text, **choice)
    return {**row, "spans": [span.to_dict() for span in spans]}


def check_quote(
    text: Annotated[str, typer.Argument(help='The quotation; "..." stands for any words.')],
    *,
    as_json: options.Json = False,
    place: options.Place,
    **choice: Unpack[QuoteOptions],
) -> None:
    """Check whether somebody said a quotation: each place, or what comes nearest and status 1."""
    from hybrid_search.cli.show_result import show_quote

    with connect(**place) as client:
        check = client.check_quote(text, **choice)
    if as_json:
        options.print_json(check.to_dict())
    else:
        show_quote(check)
    if not check.found:
        options.exit_with(options.EXIT_NOT_FOUND)


def _show_requests(requests: Sequence[tuple[str, dict[str, Any]]], as_json: bool) -> None:
    if as_json:
        options.print_json([{"path": path, "body": body} for path, body in requests])
        return
    for path, body in requests:
        print(f"POST {path}\n{escape_json(options.format_json(body, indent=2))}\n")


def show(
    document_id: Annotated[
        str, typer.Argument(metavar="ID", help="The id of the document, as a hit has it.")
    ],
    index: options.Index = DEFAULT_INDEX,
    phrase: Annotated[
        str | None, typer.Option(help="A phrase, whose best spans are marked.", metavar="TEXT")
    ] = None,
    spans: Annotated[int, typer.Option(help="Spans to mark.")] = DOCUMENT_SPANS,
    *,
    place: options.Place,
    as_json: options.Json = False,
) -> None:
    """Show a document: its metadata, and its turns with their speakers and times."""
    from hybrid_search.cli.show_result import show_document

    with connect(**place) as client:
        view = client.open_document(document_id, phrase, index=index, spans=spans)
    if as_json:
        options.print_json(view.to_dict())
    else:
        show_document(view)
