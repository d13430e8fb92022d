"""Time each model of this project beside its base: ``python -m benchmarks.speed.models``.

Our encoder in int8 and sentence-transformers with the weights that the model was trained from, on
the same texts, in turns, round by round. Needs the extra ``export``, sentence-transformers, and the
folders of the bases (``python -m export.bge``, ``export.mpnet`` and ``export.e5``).
"""

from __future__ import annotations

import argparse
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import results
from benchmarks.speed.encode import Way, onnx_way, passages, race, sentence_transformers, turns
from hybrid_search.encoder import SHIPPED, onnx
from hybrid_search.system import available_cores

MODELS = results.ROOT.parent / "models"
PRECISION = "int8"
RESULT = "encode-models"


@dataclass(frozen=True, slots=True)
class Pair:
    """A model folder, and the folder of the weights that it was trained from."""

    name: str
    folder: Path
    base_name: str
    base: str

    def list_ways(self) -> dict[str, Way]:
        """Return how each of the two encodes, by the names of `labels`."""
        ways = (
            onnx_way(self.folder, PRECISION, "cpu"),
            sentence_transformers(self.base, "cpu"),
        )
        return dict(zip(self.labels, ways, strict=True))

    @property
    def labels(self) -> tuple[str, str]:
        """What the two are called in the result."""
        return f"{self.name}, {PRECISION}", f"{self.base_name}, sentence-transformers"


def list_pairs() -> list[Pair]:
    """Return the models of this project with their bases."""
    mpnet = MODELS / "slice-mpnet" / "slice_mpnet"
    multilingual = MODELS / "slice-multilingual" / "slice_multilingual"
    return [
        Pair(SHIPPED.name, SHIPPED, "bge-small-en-v1.5", find_base("bge-small", "bge")),
        Pair("slice-mpnet", mpnet, "all-mpnet-base-v2", find_base("all-mpnet-base-v2", "mpnet")),
        Pair(
            "slice-multilingual", multilingual, "multilingual-e5-small", find_base("e5-small", "e5")
        ),
    ]


def find_base(name: str, module: str) -> str:
    """Return the folder of a base; SystemExit says which module of `export` makes it."""
    folder = results.WEIGHTS / name
    if not folder.is_dir():
        raise SystemExit(f"no weights at {folder}: python -m export.{module} --out {folder}")
    return str(folder)


def measure(
    pairs: list[Pair], data: Path, tokens: int, rounds: int, cpu_time: bool = False
) -> dict[str, Any]:
    """Return tokens a second of each model and of its base, and how many times that is.

    With `cpu_time` seconds are those of the CPU, which is for one core of a busy machine. Tokens
    are those of the first model's tokenizer; texts are its passages of 128 tokens, and turns.
    """
    tokenizer = onnx._tokenizer(pairs[0].folder / "tokenizer.json")
    ways = {name: way for pair in pairs for name, way in pair.list_ways().items()}
    clock = time.process_time if cpu_time else time.perf_counter
    measured: dict[str, Any] = {
        "cores": available_cores(),
        "seconds": "of the CPU" if cpu_time else "by the clock",
        "rounds": rounds,
        "texts": {},
    }
    for name, cut in (("passages of 128 tokens", passages), ("turns", turns)):
        texts = cut(data, tokenizer, tokens)
        encodings = tokenizer.encode_batch(texts, add_special_tokens=True)
        count = sum(len(encoding.ids) for encoding in encodings)
        seconds = race(ways, texts, rounds, clock)
        measured["texts"][name] = {
            "texts": len(texts),
            "tokens": count,
            "models": {pair.name: _compare(pair, seconds, count) for pair in pairs},
        }
    return measured


def _compare(pair: Pair, seconds: dict[str, float], count: int) -> dict[str, Any]:
    """Return the rates of a model and of its base."""
    model, base = (seconds[label] for label in pair.labels)
    return {
        "tokens/s": round(count / model),
        "base": pair.base_name,
        "base, tokens/s": round(count / base),
        "times": round(base / model, 2),
    }


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=results.DATA, help="the folder of data sets")
    parser.add_argument("--tokens", type=int, default=20_000, help="of each kind of texts")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--cpu-time",
        action="store_true",
        help="use one core, and count CPU time: for a machine that does other work, too",
    )
    options = parser.parse_args()
    if options.cpu_time:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-1:])
    pairs = list_pairs()
    measured = measure(pairs, options.data, options.tokens, options.rounds, options.cpu_time)
    results.write(RESULT, measured, results.SPEED)


if __name__ == "__main__":
    main()
