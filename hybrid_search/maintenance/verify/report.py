"""What a look at an index found."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

from hybrid_search.backends.types import Fault

FINDINGS = 1000
"""Findings that are kept; all are counted."""

EXACT = 0.0011
"""The largest difference that int8 codes made to any span's cosine
(`hybrid_search.text.token_codes`).
"""

INT8 = 0.017
"""The same between two runs in int8. A span's cosine with itself in float32 was never under .9958
(`parity` in the model's encoder.json); two runs that differ from it in opposite directions are at
twice that angle, and 1 - cos(2a) = 4 * (1 - cos(a)) to a hundredth: 4 * .0042. They differ at all
because activations are quantized together with those of the texts that happen to be in the same
batch.
"""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong, and what to do about it.

    `ordinal` is None where all of the document is meant.
    """

    kind: str
    document_id: str
    ordinal: int | None
    found: str
    remedy: str


@dataclass(slots=True)
class Verification:
    """What was looked at, and what was wrong with it.

    `documents` and `passages` were listed, those `encoded` encoded again. `difference` is the
    largest between a span's cosine with itself and 1,
    0..2, of passages that are in the index's precision, and `bound` what it may be.
    `other_precision` passages are beyond it but no farther than int8 is from the others: they were
    written in another precision than the index was made in.
    """

    index: str
    precision: str
    encoded_in: str
    documents: int = 0
    passages: int = 0
    encoded_documents: int = 0
    encoded_passages: int = 0
    difference: float = 0.0
    other_precision: int = 0
    wrong: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)

    @property
    def bound(self) -> float:
        """The largest difference between two runs of the model, in the precision of the index and
        in that of this one.
        """
        return INT8 if "int8" in (self.precision, self.encoded_in) else EXACT

    @property
    def is_sound(self) -> bool:
        """Whether nothing was found to be wrong."""
        return not self.wrong

    def add(self, document_id: str, ordinal: int, fault: Fault) -> None:
        """Count a fault, and keep it among the first."""
        self.wrong[fault.kind] += 1
        if len(self.findings) < FINDINGS:
            remedy = _remedy(self.index, document_id)
            self.findings.append(
                Finding(
                    fault.kind,
                    document_id,
                    ordinal if ordinal >= 0 else None,
                    fault.description,
                    remedy,
                )
            )

    def check_difference(self, difference: float) -> Fault | None:
        """Take in how far a passage is from its codes made anew; what is wrong with it, if that is
        too far.
        """
        if difference <= self.bound:
            self.difference = max(self.difference, difference)
        elif difference <= INT8:
            self.other_precision += 1
        else:
            return Fault(
                "codes",
                f"a span's cosine is {difference:.4f} off by its stored token codes, and may be {self.bound:.4f}",
            )
        return None

    def to_dict(self) -> dict[str, Any]:
        """As the command line prints it."""
        values = {
            name: getattr(self, name)
            for name in self.__slots__
            if name not in ("wrong", "findings", "difference")
        }
        numbers = {"difference": round(self.difference, 6), "bound": self.bound}
        return {
            **values,
            **numbers,
            "wrong": dict(self.wrong),
            "findings": [asdict(finding) for finding in self.findings],
        }


def _remedy(index: str, document_id: str) -> str:
    if not document_id:
        return "it is never found and takes space alone: ingest into a new index to be rid of it"
    return f"ingest it again, after hybrid-search delete --index {index} -- {document_id!r} (what is unchanged would be skipped)"
