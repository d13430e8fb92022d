"""Cuts a leg to its window, so that one long document never takes all of it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable


def choose_window(documents: Iterable[Hashable], window: int) -> list[int]:
    """Return the positions of the passages within the window of a leg; `documents` are theirs.

    They are the best `window` passages, which come first, and the best passage of each further
    document until there are `window` documents.
    """
    in_order = list(documents)
    from_last = range(len(in_order) - 1, -1, -1)
    firsts = sorted(dict(zip(reversed(in_order), from_last, strict=True)).values())[:window]
    end = firsts[-1] + 1 if len(firsts) == window else len(in_order)
    return sorted({*range(min(window, end)), *firsts})
