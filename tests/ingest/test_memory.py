"""The memory of an ingest: a text of 5 MB takes little more than its parts."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

pytestmark = pytest.mark.faults

PREPARATION = """
from pathlib import Path
from hybrid_search.backends.types import IndexSpec
from hybrid_search.ingest import prepare, rejects, seen_ids, summary
from hybrid_search.ingest.options import IngestOptions
from hybrid_search.ingest.sources import files
spec = IndexSpec("model", "fingerprint", 384, "int8", "turn", "6/1")
rejected = rejects.Rejects(Path("rejected"))
ids = seen_ids.SeenIds()
counts, options = summary.Summary(), IngestOptions("calls")
preparation = prepare.Preparation(spec, lambda ids: {}, rejected, ids, counts, options)
print(sum(len(block) for block in preparation.blocks(files.read(["big.jsonl"]), 64)))
"""
COMMAND = """
import numpy as np
from hybrid_search import encoder
from hybrid_search.cli.app import app
from hybrid_search.encoder import EncoderInfo
from hybrid_search.text.types import Encoding
from hybrid_search.text.words import words

class WideEncoder:
    info = EncoderInfo("wide", "wide-fingerprint", 1536, "float32", "turn")

    def encode(self, texts):
        bounds = [words(text) for text in texts]
        return [Encoding(np.ones((len(of_text), 1536), np.float32), of_text) for of_text in bounds]

encoder.load = lambda *_: WideEncoder()
encoder.truncate_encoder = lambda full, *_: full
try:
    app(["ingest", "--url", "embedded:{}", "--index", "calls", "big.jsonl"])
except SystemExit as end:
    assert not end.code
"""
STATUS = Path("/proc/self/status")
# not ru_maxrss, which begins with the peak of the parent process
PEAK = f"\nprint(open({str(STATUS)!r}).read().split('VmHWM:')[1].split()[0])"
needs_proc_status = pytest.mark.skipif(
    not STATUS.exists(),
    reason=f"peak memory is read from {STATUS}, which this system does not have",
)


def peak_memory(program: str, texts: Sequence[str]) -> float:
    """Return the peak memory, in MiB, of a process that reads `texts` from ``big.jsonl``."""
    with Path("big.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(
            json.dumps({"id": str(number), "text": text}) + "\n"
            for number, text in enumerate(texts)
        )
    process = subprocess.run(
        [sys.executable, "-c", program + PEAK],
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    return int(process.stdout.splitlines()[-1]) / 1024  # given in KiB


def five_megabytes(word: str, texts: int) -> list[str]:
    """Return 5 MB of sentences of `word`, in `texts` texts of equal length."""
    sentence = " ".join([word] * 12) + ". "
    return [sentence * (5_000_000 // len(sentence) // texts)] * texts


@needs_proc_status
def test_to_cut_a_text_of_5_mb_takes_little_more_memory_than_to_cut_its_parts() -> None:
    """One text of a million words against the same in 500: 30 MB more were measured.

    5 MB each for the line, its decoding, the text, and the two copies that are hashed; 8 for the
    bounds of the words. 60 are allowed: a Python object a word would take 100 to 200 more.
    """
    one_text = peak_memory(PREPARATION, five_megabytes("four", 1))
    growth = one_text - peak_memory(PREPARATION, five_megabytes("four", 500))
    assert growth < 60


@needs_proc_status
def test_to_index_a_text_of_5_mb_takes_little_more_memory_than_to_index_its_parts() -> None:
    """One text against the same in 50, through the whole command.

    25 MB more were measured, for the reasons above; 64 are allowed, and 167 were measured when the
    encodings of the whole text were in memory at once.

    The words have 110 letters, so that 5 MB are 45,000 words. The encoder takes no time, and its
    vectors are four times as wide as the shipped one's: 45,000 * 1,536 numbers * 4 bytes = 276 MB.

    How far the threads run ahead of each other differs on a busy machine, where 77 MB were measured
    once. So the first of three runs that is below the limit counts.
    """
    assert any(measure_growth("x" * 110) < 64 for _ in range(3))


def measure_growth(word: str) -> float:
    """Return how many MB more one text of 5 MB takes to index than the same in 50 texts."""
    one_text = peak_memory(COMMAND.format("one"), five_megabytes(word, 1))
    return one_text - peak_memory(COMMAND.format("fifty"), five_megabytes(word, 50))
