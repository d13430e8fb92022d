"""Time end-to-end ingest against its two parts, the encoder alone (e) and the store alone (s).

On the same texts, in one run.
"""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks import results
from benchmarks.speed.counting import CountingStore
from hybrid_search import encoder
from hybrid_search.backends import open_backend
from hybrid_search.backends.types import IndexSpec
from hybrid_search.config import DEFAULT_POLICY
from hybrid_search.encoder import passage_codes
from hybrid_search.encoder.base import codebook, span_prior
from hybrid_search.ingest import document_parser
from hybrid_search.ingest.options import IngestOptions
from hybrid_search.ingest.pipeline import BLOCK_PASSAGES
from hybrid_search.ingest.pipeline import ingest as run_ingest
from hybrid_search.ingest.sources import files
from hybrid_search.ingest.types import SourceLine
from hybrid_search.text import window_policy
from hybrid_search.text.passages import split
from hybrid_search.text.types import Document, Entry, Passage

INDEX = "calls_sgd"

FEW = 2000
"""Calls whose memory is compared with that of all."""

CountedPassage = tuple[Document, int, Passage]


def measure(source: Path, calls: int, url: str | None = None) -> dict[str, Any]:
    """Return seconds of each on the first `calls` documents, and the ingest's peak memory.

    The index is made at `url`, where both are removed again, or else in the benchmark store, where
    the other measurements find it.
    """
    folder = results.STORE / "speed"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    lines = list(files.read([str(_head(source, calls, folder / "calls.jsonl.gz"))]))
    counted_passages = [
        piece for line in lines for piece in _split_document(document_parser.parse(line.data)[0])
    ]
    encoding, tokens, entries = _encode(counted_passages)
    storing = _store(entries, url or f"embedded:{folder / 'store'}")
    del entries
    counting = _time_counting(lines, folder / "rejected.jsonl")
    few = _ingest(
        _head(source, min(calls, FEW), folder / "few.jsonl.gz"), f"embedded:{folder / 'few'}"
    )
    if not url:
        _clear(results.STORE)
    ingest = _ingest(folder / "calls.jsonl.gz", url or f"embedded:{results.STORE}")
    if url:
        _drop(url)
    parts_seconds = encoding + storing
    return {
        "calls": len(lines),
        "passages": len(counted_passages),
        "tokens": tokens,
        "e: encoder alone, s": round(encoding, 1),
        "s: store alone, s": round(storing, 1),
        "ingest, s": round(ingest["seconds"], 1),
        "ingest / (e + s)": round(ingest["seconds"] / parts_seconds, 3),
        "into a store that only counts, s": round(counting, 1),
        "its share of the encoder's own rate": round(encoding / counting, 3),
        "tokens/s": round(tokens / ingest["seconds"]),
        "stages, s": ingest["stages"],
        "peak memory, MB": ingest["peak"],
        "peak anonymous memory, MB": ingest["anonymous"],
        f"peak anonymous memory of {FEW:,} calls, MB": few["anonymous"],
    }


def _head(source: Path, calls: int, target: Path) -> Path:
    with gzip.open(source, "rb") as read, gzip.open(target, "wb") as written:
        for number, line in enumerate(read):
            if number == calls:
                break
            written.write(line)
    return target


def _split_document(document: Document) -> Iterator[CountedPassage]:
    passages = list(split(document))
    return ((document, len(passages), passage) for passage in passages)


def _encode(counted_passages: Sequence[CountedPassage]) -> tuple[float, int, list[Entry]]:
    """Return the seconds of the encoder alone, its tokens, and the entries for the store.

    The entries are made outside the clock.
    """
    loaded = encoder.truncate_encoder(encoder.load())
    spec = IndexSpec.from_encoder(loaded.info, DEFAULT_POLICY)
    seconds, tokens = 0.0, 0
    entries: list[Entry] = []
    for start in range(0, len(counted_passages), BLOCK_PASSAGES):
        block = counted_passages[start : start + BLOCK_PASSAGES]
        texts = [
            text
            for document, _, passage in block
            for text in passage_codes.encoder_texts(document, [passage])
        ]
        started_at = time.perf_counter()
        encodings = loaded.encode(texts)
        seconds += time.perf_counter() - started_at
        tokens += sum(len(encoding.offsets) for encoding in encodings)
        coded = passage_codes.pack_word_codes(
            [document.text[passage.start : passage.end] for document, _, passage in block],
            [passage for *_, passage in block],
            encodings,
            codebook(loaded),
            spec.codes,
            span_prior(loaded),
        )
        for (document, count, passage), codes in zip(block, coded, strict=True):
            entries.append(
                Entry(
                    document,
                    "measured",
                    count,
                    passage,
                    codes,
                    len(window_policy.window_bounds(codes.counts, spec.policy)),
                )
            )
    return seconds, tokens, entries


def _store(entries: Sequence[Entry], url: str) -> float:
    """Return the seconds to write `entries` and to close the index, segments included."""
    spec = IndexSpec.from_encoder(encoder.truncate_encoder(encoder.load()).info, DEFAULT_POLICY)
    backend = open_backend(url)
    started_at = time.perf_counter()
    with backend.writer(INDEX, spec) as writer:
        for start in range(0, len(entries), BLOCK_PASSAGES):
            writer.write(entries[start : start + BLOCK_PASSAGES])
    seconds = time.perf_counter() - started_at
    backend.close()
    if not url.startswith("embedded:"):
        _drop(url)
    return seconds


def _drop(url: str) -> None:
    backend = open_backend(url)
    backend.drop_index(INDEX)
    backend.close()


def _clear(store: Path) -> None:
    """Remove the index of an earlier run."""
    for old in store.glob(f"{INDEX}.*"):
        shutil.rmtree(old) if old.is_dir() else old.unlink()


def _time_counting(lines: Sequence[SourceLine], rejects: Path) -> float:
    """Return the seconds of the whole pipeline with a store that takes no time."""
    started_at = time.perf_counter()
    counted_encoder = encoder.truncate_encoder(encoder.load())
    run_ingest(lines, CountingStore(), counted_encoder, IngestOptions(INDEX, rejects))
    return time.perf_counter() - started_at


_CHILD = r"""
import json, re, runpy, sys, threading
def held(name):
    return int(re.search(name + r":\s+(\d+)", open("/proc/self/status").read())[1]) // 1024
anonymous, done = [0], threading.Event()
def watch():  # the system records no peak of it
    while not done.wait(0.2):
        anonymous[0] = max(anonymous[0], held("RssAnon"))
threading.Thread(target=watch, daemon=True).start()
sys.argv = ["ingest", *sys.argv[1:]]
try:
    runpy.run_module("hybrid_search.ingest", run_name="__main__")
finally:
    done.set()
    # The process's own peak; that of getrusage starts at its parent's.
    print(json.dumps({"peak": held("VmHWM"), "anonymous": anonymous[0]}), file=sys.stderr)
"""


def _ingest(source: Path, url: str) -> dict[str, Any]:
    """Return wall seconds, stages and peak memory of the command in a process of its own.

    Peaks are of resident and of anonymous memory, in MB.
    """
    command = [sys.executable, "-c", _CHILD, "--index", INDEX, "--url", url, str(source)]
    started_at = time.perf_counter()
    process = subprocess.run(command, capture_output=True, text=True, check=True, cwd=source.parent)
    summary = json.loads(process.stdout.splitlines()[-1])
    return {
        "seconds": time.perf_counter() - started_at,
        "stages": summary["stages"],
        **json.loads(process.stderr.splitlines()[-1]),
    }
