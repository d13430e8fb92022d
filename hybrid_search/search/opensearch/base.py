"""The server's numbers.

It computes in Java's ``float``, so each step here is rounded to single precision, too; sums are
taken one by one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

Single = np.float32
Singles = Sequence[np.float32]
"""The scores of one leg, best first; or those of one passage, leg by leg."""

ZERO = Single(0.0)
ONE = Single(1.0)
FLOOR = Single(0.001)
"""What the server gives instead of 0 to a passage that a leg did return: 0 would say that it did
not.
"""
