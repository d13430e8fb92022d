"""The commands ``verify``, ``doctor`` and ``plan``: check an index or all, and estimate."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hybrid_search import config
from hybrid_search.api import connect
from hybrid_search.cli import ingest_options, options
from hybrid_search.config import DEFAULT_INDEX, DEFAULT_SAMPLE
from hybrid_search.file_errors import explain_failure

if TYPE_CHECKING:
    from hybrid_search.maintenance.plan import Plan
    from hybrid_search.maintenance.verify.redacted import WordsCheck
    from hybrid_search.maintenance.verify.report import Verification


MAX_FINDINGS = 20
"""Maximum number of findings printed; ``--json`` has more."""


def verify(
    index: options.Index = DEFAULT_INDEX,
    sample: Annotated[
        int,
        typer.Option(help="Documents to encode again, drawn at random from the index; 0 for none."),
    ] = DEFAULT_SAMPLE,
    full: Annotated[
        bool,
        typer.Option(
            "--full", help="Read all word codes, and look for what they show of their own damage."
        ),
    ] = False,
    repair: Annotated[
        bool,
        typer.Option(
            "--repair",
            help="First encode documents with damaged word codes again from their stored text; "
            "then check as --full does.",
        ),
    ] = False,
    redacted: Annotated[
        Path | None,
        typer.Option(
            help="Only search for these words, one text a line, in all that is stored: each must "
            "be gone.",
            metavar="WORDS",
        ),
    ] = None,
    *,
    place: options.Place,
    as_json: options.Json = False,
) -> None:
    """Check that an index is complete and undamaged, and encode a sample of it again to compare.

    Every passage is listed; of the sample texts, offsets and word codes are compared. Without
    --repair nothing is changed. Exit status: 0 if all is well, 1 if something is wrong, 2 if the
    check could not run.
    """
    if redacted:
        with explain_failure(f"the words in {redacted} cannot be read", "name a text file"):
            words = redacted.read_text(encoding="utf-8").splitlines()
        with connect(**place) as client:
            _show_search(client.search_words(words, index=index), as_json)
        return
    with connect(**place) as client:
        verification = client.verify(index, sample=sample, full=full, repair=repair)
    if as_json:
        options.print_json(verification.to_dict())
    else:
        _show_verification(verification)
    if not verification.is_sound:
        options.exit_with(1)


def _show_search(check: WordsCheck, as_json: bool) -> None:
    """Print where words were found, by their lines: nothing prints the words."""
    if as_json:
        options.print_json(check.to_dict())
    else:
        options.print_lines(
            f"index {check.index!r}: {check.words:,} texts searched for in {check.passages:,} "
            f"passages, {check.terms:,} terms and {check.bytes:,} bytes of files"
        )
        for found in check.found[:MAX_FINDINGS]:
            options.print_lines(f"line {found.line} is in {found.place}")
        for remains in check.remains:
            options.print_lines(f"{remains}: hybrid-search redact removes them")
        count = len(check.found)
        options.print_lines("none is there" if check.is_clean else f"found: {count:,}")
    if not check.is_clean:
        options.exit_with(1)


def _show_verification(verification: Verification) -> None:
    options.print_lines(
        f"index {verification.index!r}: {verification.documents:,} documents with "
        f"{verification.passages:,} passages; encoded again: {verification.encoded_documents:,} "
        f"documents with {verification.encoded_passages:,} passages"
    )
    if verification.repaired_documents:
        options.print_lines(
            f"encoded again from their text: {verification.repaired_documents:,} documents"
        )
    options.print_lines(
        f"largest difference of a span's cosine: {verification.difference:.4f}, allowed "
        f"{verification.bound:.4f} (index in {verification.precision}, here "
        f"{verification.encoded_in})"
    )
    if verification.other_precision:
        options.print_lines(
            f"{verification.other_precision:,} passages were written in another precision than "
            f"{verification.precision}, which does no harm"
        )
    for finding in verification.findings[:MAX_FINDINGS]:
        passage = "" if finding.ordinal is None else f" passage {finding.ordinal}"
        place = f"{finding.document_id!r}{passage}"
        options.print_lines(f"{finding.kind}: {place}: {finding.found}; {finding.remedy}")
    if verification.wrong.total() > MAX_FINDINGS:
        options.print_lines(f"and {verification.wrong.total() - MAX_FINDINGS:,} more")
    counts_by_kind = ", ".join(
        f"{count:,} {kind}" for kind, count in verification.wrong.most_common()
    )
    options.print_lines(f"wrong: {counts_by_kind}" if counts_by_kind else "all is well")


MARKS = {"ok": "ok     ", "warning": "warning", "problem": "PROBLEM"}


def doctor(
    index: options.Index = DEFAULT_INDEX, *, place: options.Place, as_json: options.Json = False
) -> None:
    """Check everything that a run needs, and say what to do about each problem.

    Python, packages, telemetry, ONNX Runtime, device, model, and the folder or server of the
    indexes are checked. Nothing is changed. Exit status: 0, also with warnings, or 1 if there is a
    problem.
    """
    from hybrid_search.maintenance.doctor import examine

    checks = []
    for check in examine(partial(config.settings, **place), index):
        checks.append(check)
        if not as_json:
            remedy = f" -> {check.remedy}" if check.remedy else ""
            options.print_lines(f"{MARKS[check.state]} {check.name}: {check.found}{remedy}")
    if as_json:
        options.print_json({"checks": [asdict(check) for check in checks]})
    if any(check.state == "problem" for check in checks):
        options.exit_with(1)


def plan(
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            help="Files as for ingest, - for standard input. Default: the bundled sample."
        ),
    ] = None,
    documents: Annotated[
        int | None,
        typer.Option(
            help="Documents to plan for. Default: those of --index, else those of the sample.",
            min=1,
        ),
    ] = None,
    index: Annotated[
        str | None,
        typer.Option(help="An index whose policy, dimension and number of documents are used."),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            help="Windows whose vectors find passages. Default: the policy of --index, else 5/1."
        ),
    ] = None,
    *,
    reading: ingest_options.Reading,
    place: options.NewPlace,
    as_json: options.Json = False,
) -> None:
    """Estimate bytes, hours and shards for a number of documents from a sample of them.

    Up to 1,000 documents from the beginning of the sources, or as many as are encoded in 15
    seconds, are the sample. Nothing is written.
    """
    from hybrid_search.ingest.sources import files as document_sources

    source_files = sources or [str(document_sources.SAMPLE)]
    read_options = ingest_options.parse_reading(reading)
    document_sources.check(source_files, options=read_options)
    with connect(**place) as client:
        estimate = client.plan_lines(
            document_sources.read(source_files, read_options),
            documents=documents,
            index=index,
            policy=policy,
        )
    if as_json:
        options.print_json(estimate.to_dict())
    else:
        _show_plan(estimate)


def _show_plan(estimate: Plan) -> None:
    sample, load, hours = estimate.sample, estimate.load, estimate.hours
    options.print_lines(
        f"sample: {sample.documents:,} documents, {sample.tokens:,} tokens, "
        f"{estimate.tokens_a_second:,.0f} tokens/s on this machine"
    )
    if estimate.skipped:
        options.print_lines(
            f"{estimate.skipped:,} lines were left out: they are not valid documents"
        )
    rows = {
        "tokens": f"{load.tokens:,}",
        "passages": f"{load.passages:,}",
        "covering spans": f"{load.spans:,} vectors of {estimate.graph_dimension} dimensions, "
        f"policy {estimate.policy}",
        "embedded index": f"{load.embedded_bytes / 1e9:,.2f} GB",
        "server": f"{load.server_bytes / 1e9:,.2f} GB without replicas, {estimate.shards:,} "
        "primary shards of 50 GiB at most",
        "encoder alone, here": f"{hours.encoder:,.2f} h",
        "ingest, embedded, here": f"{hours.embedded:,.2f} h",
        "one server of two cores": f"{hours.server:,.2f} h to write the vectors",
    }
    options.print_lines(f"{load.documents:,} documents")
    for name, value in rows.items():
        options.print_lines(f"{name:<24}{value}")
