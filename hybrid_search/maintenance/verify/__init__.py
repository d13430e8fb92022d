"""Check that an index is complete and undamaged, and that its model still gives what is stored.

`completeness` finds the faults that the list of a document's passages shows, `reencode` puts a
document together and compares it, `repair` encodes documents again from their stored text, and
`report` has the findings and their remedies. A new kind of fault is a `Fault` in the first two.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hybrid_search.backends.base import Backend
from hybrid_search.backends.types import IndexSpec, ListedPassage, check_spec
from hybrid_search.config import DEFAULT_SAMPLE
from hybrid_search.encoder.base import Encoder
from hybrid_search.errors import UsageError
from hybrid_search.maintenance.verify.completeness import find_faults, group_by_document
from hybrid_search.maintenance.verify.reencode import compare_document
from hybrid_search.maintenance.verify.repair import is_mendable, repair_index
from hybrid_search.maintenance.verify.report import Verification

__all__ = ["Verification", "verify"]


def verify(
    backend: Backend,
    encoder: Encoder,
    index: str,
    sample: int = DEFAULT_SAMPLE,
    *,
    full: bool = False,
    repair: bool = False,
) -> Verification:
    """Check every passage of an index, and encode a sample of its documents again.

    The sample is drawn at random, for the same index the same one. A missing index raises
    IndexMissingError, an index of another model ModelError.

    Args:
        backend: Where the index is.
        encoder: The model that wrote it.
        index: Name of the index.
        sample: Number of documents to encode again.
        full: Read all word codes, and look for what they show of their own damage.
        repair: Mend first what the index itself has the data for. Implies `full`; without it
            nothing is changed.

    Returns:
        The counts and the findings.

    Raises:
        UsageError: If `sample` is negative.
    """
    if sample < 0:
        raise UsageError(f"sample is {sample}: give a number of documents, 0 for none")
    spec, _ = backend.read_head(index)
    check_spec(index, spec, IndexSpec.from_encoder(encoder.info, spec.policy, spec.codes))
    verification = Verification(index, spec.precision, encoder.info.precision)
    if repair:
        verification.repaired_documents = repair_index(backend, encoder, index, spec)
    sampled: list[Sequence[ListedPassage]] = []
    sound_documents, random = 0, np.random.default_rng(0)
    for rows in group_by_document(backend.iterate_passages(index, full=full or repair)):
        faults = list(find_faults(rows, spec))
        mendable = not repair and is_mendable(faults)
        for row, fault in faults:
            verification.add(row.document_id, row.ordinal, fault, is_mendable=mendable)
        verification.passages += len(rows)
        verification.documents += 1 if rows[0].document_id else 0
        if faults:  # it must be ingested again in any case
            continue
        sound_documents += 1
        if len(sampled) < sample:
            sampled.append(rows)
        elif (place := random.integers(sound_documents)) < sample:
            sampled[place] = rows  # so that each document is as likely as any other
    for rows in sampled:
        compare_document(backend, encoder, index, rows, verification)
    return verification
