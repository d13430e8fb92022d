"""The server's numbers, in single precision.

It computes in Java's ``float``: here, too, each step is rounded to single precision, and sums are
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
"""The least score of a passage that a leg returned: 0 would say that it did not return it."""
