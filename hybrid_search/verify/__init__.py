"""Whether an index is what its sources and its model make of them: all passages listed and counted, a sample of the documents encoded again."""

from __future__ import annotations

from collections.abc import Sequence

from hybrid_search.backends.base import Backend, IndexSpec, Listed, check_spec
from hybrid_search.encoder.base import Encoder
from hybrid_search.errors import UsageError
from hybrid_search.verify.report import Verification
from hybrid_search.verify.sample import compared
from hybrid_search.verify.spread import Spread
from hybrid_search.verify.structure import documents, faults

__all__ = ["SAMPLE", "Verification", "verify"]

SAMPLE = 100
"""Documents that are encoded again, if nobody says how many."""


def verify(backend: Backend, encoder: Encoder, index: str, sample: int = SAMPLE) -> Verification:
    """Look at every passage of `index`, and encode `sample` of its documents again, evenly spread over it. Nothing is changed.

    Raises UsageError for a sample under 0, IndexMissingError, and ModelError where the index is of another model.
    """
    if sample < 0:
        raise UsageError(f"sample is {sample}: it is to be the number of documents to encode again, 0 for none")
    spec, _ = backend.head(index)
    check_spec(index, spec, IndexSpec.of(encoder.info, spec.policy))
    found, spread = Verification(index, spec.precision, encoder.info.precision), Spread[Sequence[Listed]](sample)
    for rows in documents(backend.walk(index)):
        sound = True
        for row, fault in faults(rows, spec):
            found.add(row.document_id, row.ordinal, fault)
            sound = False
        found.passages += len(rows)
        found.documents += 1 if rows[0].document_id else 0
        if sound:  # of the others it is known that they have to be ingested again
            spread.add(rows)
    for rows in spread.chosen():
        compared(backend, encoder, index, rows, found)
    return found
