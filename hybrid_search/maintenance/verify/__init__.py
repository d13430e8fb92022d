"""Whether an index is what its sources and its model make of them: all passages listed and counted,
a sample of the documents encoded again.
"""

from __future__ import annotations

from collections.abc import Sequence

from hybrid_search.backends.base import Backend
from hybrid_search.backends.types import IndexSpec, ListedPassage, check_spec
from hybrid_search.encoder.base import Encoder
from hybrid_search.errors import UsageError
from hybrid_search.maintenance.verify.completeness import find_faults, group_by_document
from hybrid_search.maintenance.verify.even_sample import EvenSample
from hybrid_search.maintenance.verify.reencode import compare_document
from hybrid_search.maintenance.verify.report import Verification

__all__ = ["SAMPLE", "Verification", "verify"]

SAMPLE = 100
"""Documents that are encoded again, if nobody says how many."""


def verify(backend: Backend, encoder: Encoder, index: str, sample: int = SAMPLE) -> Verification:
    """Look at every passage of `index`, and encode `sample` of its documents again, evenly spread
    over it.

    Nothing is changed.

    Raises UsageError for a sample under 0, IndexMissingError, and ModelError where the index is of
    another model.
    """
    if sample < 0:
        raise UsageError(
            f"sample is {sample}: it is to be the number of documents to encode again, 0 for none"
        )
    spec, _ = backend.read_head(index)
    check_spec(index, spec, IndexSpec.from_encoder(encoder.info, spec.policy))
    verification, even_sample = (
        Verification(index, spec.precision, encoder.info.precision),
        EvenSample[Sequence[ListedPassage]](sample),
    )
    for rows in group_by_document(backend.iterate_passages(index)):
        is_sound = True
        for row, fault in find_faults(rows, spec):
            verification.add(row.document_id, row.ordinal, fault)
            is_sound = False
        verification.passages += len(rows)
        verification.documents += 1 if rows[0].document_id else 0
        if is_sound:  # of the others it is known that they have to be ingested again
            even_sample.add(rows)
    for rows in even_sample.select():
        compare_document(backend, encoder, index, rows, verification)
    return verification
