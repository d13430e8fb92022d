"""Measure quality against bytes by vector size: ``python -m benchmarks.quality.sizes``.

Everything is encoded once, and truncated. Bytes are those of an embedded index of about ``--calls``
of calls_sgd.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks import results
from benchmarks.quality import encoders, stsb_context, turns
from benchmarks.quality.collection import ingest_task
from benchmarks.quality.encoders import Model
from benchmarks.quality.tasks import TASKS
from benchmarks.speed import size
from hybrid_search.encoder import Encoder, EncoderInfo, truncate_encoder
from hybrid_search.text.types import Encoding

CALLS = 1500


@dataclass(frozen=True, slots=True)
class CachingEncoder:
    """An `Encoder` that encodes each text once."""

    encoder: Encoder
    encodings: dict[str, Encoding] = field(default_factory=dict)

    @property
    def info(self) -> EncoderInfo:
        """The info of the wrapped encoder."""
        return self.encoder.info

    def encode(self, texts: Sequence[str]) -> list[Encoding]:
        """See `Encoder.encode`."""
        new = [text for text in dict.fromkeys(texts) if text not in self.encodings]
        self.encodings.update(zip(new, self.encoder.encode(new), strict=True))
        return [self.encodings[text] for text in texts]


def measure(
    model: Model, data: Path, calls: int = CALLS, rows: int | None = None
) -> dict[str, Any]:
    """Return for each size its quality and the bytes of an index per 1,000 words.

    Quality is Pearson on STS-B-Context, and nDCG@10 of turns by their best span and by one vector.
    """
    full_encoder = encoders.load_full_encoder(model)
    reader = CachingEncoder(full_encoder)
    dimensions = sorted({*full_encoder.info.sizes, full_encoder.info.dimension})
    return {
        str(dimension): _row(reader, replace(model, dimension=dimension), data, calls, rows)
        for dimension in dimensions
    }


def _row(reader: Encoder, model: Model, data: Path, calls: int, rows: int | None) -> dict[str, Any]:
    truncated = truncate_encoder(reader, model.dimension)
    passes = {
        name: stsb_context.score(truncated, data / stsb_context.FILE, rows, name == "sentence-wise")
        for name in ("single pass", "sentence-wise")
    }
    systems = turns.measure(truncated, data, model.calibration, calls)["systems"]
    task = TASKS["calls_sgd"]
    with ingest_task(task, data, model, calls).client as client:
        figures = size.measure(client, task.name)
    return {
        **{name: pass_figures["pearson"] for name, pass_figures in passes.items()},
        **{name: round(systems[name]["mean"], 4) for name in ("best span", "one vector a turn")},
        "bytes per 1,000 words": figures["bytes per 1,000 words"],
    }


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    encoders.add_options(parser)
    parser.add_argument(
        "--calls", type=int, default=CALLS, help="about so many of calls_sgd, evenly spread"
    )
    options = parser.parse_args()
    model = encoders.load_model(options)
    results.write(
        f"sizes{model.suffix()}",
        {
            "model": model.label,
            "calls": options.calls,
            "sizes": measure(model, options.data, options.calls),
        },
        results.QUALITY,
    )


if __name__ == "__main__":
    main()
