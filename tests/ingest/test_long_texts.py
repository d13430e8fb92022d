"""The memory of a document grows with its length, whatever it consists of."""

from __future__ import annotations

import tracemalloc

import pytest

from hybrid_search.backends.memory import MemoryBackend
from tests.helpers.tiny_encoder import fill_index

pytestmark = pytest.mark.faults

UNITS = {
    "one letter": "a",
    "emoji": "😀",
    "flags": "🇩🇪",
    "combining marks": "a\u0301",
    "ideographs": "語",
    "line breaks": "\n",
    "punctuation": ".",
    "an address": "https://a.b/c?d=e&",
    "base64": "QUJD+/",
}
MORE = 1.25
"""For twice the text at most so many times twice the memory: what does not grow is small."""

FIXED_BYTES = 2_000_000
"""What the first document allocates for good: caches and tables."""


@pytest.mark.parametrize("kind", UNITS)
def test_twice_the_text_takes_twice_the_memory(kind: str) -> None:
    measure_peak(UNITS[kind], 2_000)  # what is made once
    peak, of_twice = (measure_peak(UNITS[kind], characters) for characters in (15_000, 30_000))
    assert of_twice <= MORE * 2 * peak + FIXED_BYTES


def measure_peak(unit: str, characters: int) -> int:
    """Return the most bytes that are allocated while a document of one text is ingested."""
    text = "x " + unit * (characters // len(unit))
    tracemalloc.start()
    try:
        assert fill_index(MemoryBackend(), [{"id": "a", "text": text}]).documents == 1
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
