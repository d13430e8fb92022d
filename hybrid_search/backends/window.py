"""Cuts a leg to its window, so that one long document never takes all of it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable


def choose_window(documents: Iterable[Hashable], window: int) -> list[int]:
    """Return the positions of the passages within the window of a leg.

    They are the best `window` passages, and the best passage of each further document until there
    are `window` documents; `documents` are those of the passages, the best passage first.
    """
    in_order = list(documents)
    from_last = range(len(in_order) - 1, -1, -1)
    firsts = sorted(dict(zip(reversed(in_order), from_last, strict=True)).values())[:window]
    end = firsts[-1] + 1 if len(firsts) == window else len(in_order)
    return sorted({*range(min(window, end)), *firsts})
