"""The report on an index: counts, findings, remedies, and how far two encodings may differ."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

from hybrid_search.backends.types import Fault

FINDINGS = 1000
"""Findings that are listed at most; all are counted."""

REPAIR = "hybrid-search verify --index {} --repair mends it"

EXACT = 0.0011
"""The largest difference between two runs of a model in float32 or float16."""

INT8 = 0.017
"""The largest difference between two runs of a model in int8.

A span's cosine with itself in float32 was never under .9958 (`parity` in the model's encoder.json).
Two runs that differ from float32 in opposite directions are at twice that angle, and 1 - cos(2a) =
4 * (1 - cos(a)) to a hundredth: 4 * .0042. Runs differ at all because activations are quantized
together with those of the other texts of a batch.
"""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong, and the remedy."""

    kind: str
    document_id: str
    ordinal: int | None
    """The number of the passage, None if the whole document is meant."""
    found: str
    remedy: str


@dataclass(slots=True)
class Verification:
    """Counts of what was checked, and the faults."""

    index: str
    precision: str
    """The precision that the index was made in."""
    encoded_in: str
    """The precision of the encoder that encoded the sample again."""
    documents: int = 0
    passages: int = 0
    encoded_documents: int = 0
    encoded_passages: int = 0
    repaired_documents: int = 0
    difference: float = 0.0
    """The largest 1 - cosine between a span's stored and fresh vector, beyond what rounding costs,
    among the passages within `bound`.
    """
    other_precision: int = 0
    """Passages beyond `bound` but within `INT8`: written in another precision than the index."""
    wrong: Counter[str] = field(default_factory=Counter)
    """The number of faults of each kind."""
    findings: list[Finding] = field(default_factory=list)
    """The first `FINDINGS` faults."""

    @property
    def bound(self) -> float:
        """The largest difference allowed between the index's precision and this encoder's."""
        return INT8 if "int8" in (self.precision, self.encoded_in) else EXACT

    @property
    def is_sound(self) -> bool:
        """True if nothing was wrong."""
        return not self.wrong

    def add(
        self, document_id: str, ordinal: int, fault: Fault, *, is_mendable: bool = False
    ) -> None:
        """Count a fault, and list it if it is among the first."""
        self.wrong[fault.kind] += 1
        if len(self.findings) < FINDINGS:
            remedy = REPAIR.format(self.index) if is_mendable else _remedy(self.index, document_id)
            passage = ordinal if ordinal >= 0 else None
            finding = Finding(fault.kind, document_id, passage, fault.description, remedy)
            self.findings.append(finding)

    def check_difference(self, difference: float) -> Fault | None:
        """Return a fault if a difference is too large, otherwise count it and return None."""
        if difference <= self.bound:
            self.difference = max(self.difference, difference)
        elif difference <= INT8:
            self.other_precision += 1
        else:
            finding = (
                f"a span's cosine is {difference:.4f} off by its stored word codes, and may be"
            )
            return Fault("codes", f"{finding} {self.bound:.4f}")
        return None

    def to_dict(self) -> dict[str, Any]:
        """Return the report as ``verify --json`` prints it."""
        return {
            **asdict(self),
            "difference": round(self.difference, 6),
            "bound": self.bound,
            "wrong": dict(self.wrong),  # asdict copies no counter
        }


def _remedy(index: str, document_id: str) -> str:
    if not document_id:  # no command can name its document
        return (
            "restore the index from a backup, or delete it and ingest again, after "
            f"hybrid-search delete --index {index} --yes"
        )
    return (
        "ingest it again, after "
        f"hybrid-search delete --index {index} -- {document_id!r} (unchanged, it would be skipped)"
    )
