"""``verify``: whether an index is what its sources and its model make of them."""

from __future__ import annotations

from typing import Annotated

import typer

from hybrid_search.cli import options
from hybrid_search.config import DEFAULT_INDEX
from hybrid_search.maintenance.verify.report import Verification

MAX_FINDINGS = 20
"""Findings that people are shown."""


def verify(
    index: options.Index = DEFAULT_INDEX,
    sample: Annotated[
        int,
        typer.Option(help="Documents to encode again, evenly spread over the index; 0 for none."),
    ] = 100,
    url: options.Url = None,
    model: options.Model = None,
    device: options.Device = None,
    precision: options.Precision = None,
    as_json: options.Json = False,
) -> None:
    """Look whether all passages are there and whole, and encode a sample of the documents again to
    compare offsets and token codes.

    Nothing is changed. Exit status: 0 if all is well, 1 if something is wrong, 2 if nothing could
    run.
    """
    with options.report_errors():
        from hybrid_search.api import connect

        with connect(url, model=model, device=device, precision=precision) as client:
            verification = client.verify(index, sample=sample)
        if as_json:
            options.print_json(verification.to_dict())
        else:
            _show(verification)
    raise typer.Exit(0 if verification.is_sound else 1)


def _show(verification: Verification) -> None:
    totals = f"{verification.documents:,} documents in {verification.passages:,} passages"
    typer.echo(
        f"index {verification.index!r}: {totals}, {verification.encoded_documents:,} and {verification.encoded_passages:,} of them encoded again"
    )
    typer.echo(
        f"largest difference of a span's cosine: {verification.difference:.4f}, allowed {verification.bound:.4f} ({verification.precision}, here {verification.encoded_in})"
    )
    if verification.other_precision:
        typer.echo(
            f"{verification.other_precision:,} passages were written in another precision than {verification.precision}: they may stay"
        )
    for finding in verification.findings[:MAX_FINDINGS]:
        place = f"{finding.document_id!r}" + (
            "" if finding.ordinal is None else f" passage {finding.ordinal}"
        )
        typer.echo(f"{finding.kind}: {place}: {finding.found}; {finding.remedy}")
    if verification.wrong.total() > MAX_FINDINGS:
        typer.echo(f"and {verification.wrong.total() - MAX_FINDINGS:,} more")
    counts_by_kind = ", ".join(
        f"{count:,} {kind}" for kind, count in verification.wrong.most_common()
    )
    typer.echo(f"wrong: {counts_by_kind}" if counts_by_kind else "all is well")
