"""``verify``: whether an index is what its sources and its model make of them."""

from __future__ import annotations

from typing import Annotated

import typer

from hybrid_search.cli import options
from hybrid_search.config import DEFAULT_INDEX
from hybrid_search.verify.report import Verification

SHOWN = 20
"""Findings that people are shown."""


def verify(
    index: options.Index = DEFAULT_INDEX,
    sample: Annotated[int, typer.Option(help="Documents to encode again, evenly spread over the index; 0 for none.")] = 100,
    url: options.Url = None,
    model: options.Model = None,
    device: options.Device = None,
    precision: options.Precision = None,
    as_json: options.Json = False,
) -> None:
    """Look whether all passages are there and whole, and encode a sample of the documents again to compare offsets and token codes.

    Nothing is changed. Exit status: 0 if all is well, 1 if something is wrong, 2 if nothing could run.
    """
    with options.told():
        from hybrid_search.api import connect

        with connect(url, model=model, device=device, precision=precision) as client:
            found = client.verify(index, sample=sample)
        if as_json:
            options.print_json(found.to_dict())
        else:
            _show(found)
    raise typer.Exit(0 if found.sound else 1)


def _show(found: Verification) -> None:
    looked = f"{found.documents:,} documents in {found.passages:,} passages"
    typer.echo(f"index {found.index!r}: {looked}, {found.encoded_documents:,} and {found.encoded_passages:,} of them encoded again")
    typer.echo(
        f"largest difference of a span's cosine: {found.difference:.4f}, allowed {found.bound:.4f} ({found.precision}, here {found.encoded_in})"
    )
    if found.other_precision:
        typer.echo(f"{found.other_precision:,} passages were written in another precision than {found.precision}: they may stay")
    for each in found.findings[:SHOWN]:
        place = f"{each.document_id!r}" + ("" if each.ordinal is None else f" passage {each.ordinal}")
        typer.echo(f"{each.kind}: {place}: {each.found}; {each.remedy}")
    if found.wrong.total() > SHOWN:
        typer.echo(f"and {found.wrong.total() - SHOWN:,} more")
    counted = ", ".join(f"{count:,} {kind}" for kind, count in found.wrong.most_common())
    typer.echo(f"wrong: {counted}" if counted else "all is well")
