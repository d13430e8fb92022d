"""The tables of the McPhraSy paper: ``python -m benchmarks.quality.mcphrasy [--embedder FILE] [--model DIR] [--data DIR] [--only NAME ...]``.

Similarity of phrases alone (edit distance, the model's cosine) beside that of their contexts. The embedder is made by ``python -m export.mcphrasy``;
without one the variants that need it are left out.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import results
from benchmarks.quality.mcphrasy import bases, corpora
from benchmarks.quality.mcphrasy.contexts import CONTEXTS, Library
from benchmarks.quality.mcphrasy.embedder import Embedder
from benchmarks.quality.mcphrasy.evaluations import EVALUATIONS, HERE
from benchmarks.quality.mcphrasy.system import Base, Store, variants
from benchmarks.quality.systems.base import System
from benchmarks.quality.systems.edit_distance import EditDistance


def systems(base: Base, embedder: Embedder | None, data: Path, contexts: int = CONTEXTS) -> dict[str, System]:
    """The rows of the tables."""
    store = Store(base, Library(partial(corpora.read, data), contexts))
    return {"edit distance": EditDistance(), "phrases alone": base.phrases, **variants(store, embedder)}


def measure(rows: dict[str, System], data: Path, only: tuple[str, ...] = HERE) -> dict[str, Any]:
    """The figures of each evaluation, by system."""
    return {name: {system: EVALUATIONS[name](each, data) for system, each in rows.items()} for name in only}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    bases.add_options(parser)
    parser.add_argument("--embedder", type=Path, help="embedder.npz of python -m export.mcphrasy")
    parser.add_argument("--contexts", type=int, default=CONTEXTS, help="contexts of a phrase, at most")
    parser.add_argument("--only", action="append", choices=EVALUATIONS, help="only this one; may be repeated")
    parser.add_argument("--out", type=Path, help="the JSON file; default: results/mcphrasy-COMMIT.json")
    options = parser.parse_args()
    base = bases.chosen(options)
    embedder = Embedder.load(options.embedder, base.name) if options.embedder else None
    rows = systems(base, embedder, options.data, options.contexts)
    payload = {"base": base.name, "contexts": options.contexts, **measure(rows, options.data, tuple(options.only or HERE))}
    if options.out:
        results.save(options.out, payload)
    else:
        results.write("mcphrasy", payload)


if __name__ == "__main__":
    main()
