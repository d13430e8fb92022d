"""What is wrong with the stored token codes of a passage, as far as they show it themselves."""

from __future__ import annotations

from hybrid_search.backends.types import Fault
from hybrid_search.text import token_codes
from hybrid_search.text.types import TokenCodes


def find_codes_fault(codes: TokenCodes, dimension: int) -> Fault | None:
    """Return the fault of token codes in an index of this dimension, None if they have none."""
    if not token_codes.is_sound(codes, dimension):
        return Fault("codes", "its token codes are damaged or missing")
    if not token_codes.has_own_norms(codes):
        return Fault("codes", "its norms do not fit its token codes: one or the other is damaged")
    return None
