"""What is wrong with the stored word codes of a passage, as far as they show it themselves."""

from __future__ import annotations

from hybrid_search.backends.types import Fault
from hybrid_search.text import word_codes
from hybrid_search.text.types import WordCodes


def find_codes_fault(codes: WordCodes, dimension: int) -> Fault | None:
    """Return the fault of word codes in an index of this dimension, None if they have none."""
    if not word_codes.is_sound(codes, dimension):
        return Fault("codes", "its word codes are damaged or missing")
    if not word_codes.has_own_norms(codes):
        return Fault("codes", "its norms do not fit its word codes: one or the other is damaged")
    return None
