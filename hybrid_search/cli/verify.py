"""The command ``verify``: check that an index is complete, undamaged, and from its model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hybrid_search.api import connect
from hybrid_search.cli import options
from hybrid_search.config import DEFAULT_INDEX, DEFAULT_SAMPLE

if TYPE_CHECKING:
    from hybrid_search.maintenance.verify.report import Verification

MAX_FINDINGS = 20
"""Maximum number of findings printed; ``--json`` has more."""


def verify(
    index: options.Index = DEFAULT_INDEX,
    sample: Annotated[
        int,
        typer.Option(help="Documents to encode again, spread evenly over the index; 0 for none."),
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
    *,
    place: options.Place,
    as_json: options.Json = False,
) -> None:
    """Check that an index is complete and undamaged, and encode a sample of it again to compare.

    Every passage is listed; of the sample texts, offsets and word codes are compared. Without
    --repair nothing is changed. Exit status: 0 if all is well, 1 if something is wrong, 2 if the
    check could not run.
    """
    with connect(**place) as client:
        verification = client.verify(index, sample=sample, full=full, repair=repair)
    if as_json:
        options.print_json(verification.to_dict())
    else:
        _show(verification)
    if not verification.is_sound:
        options.exit_with(1)


def _show(verification: Verification) -> None:
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
