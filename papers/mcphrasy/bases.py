"""Command-line options for the frozen models under McPhraSy."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from benchmarks.quality import encoders
from papers.mcphrasy.system import Base


def add_options(parser: ArgumentParser) -> None:
    """Add ``--spanbert`` and ``--phrasebert`` to those of `encoders.add_options`."""
    encoders.add_options(parser)
    parser.add_argument(
        "--spanbert",
        default="",
        help="a Hugging Face folder that reads masked sentences; default: --model",
    )
    parser.add_argument(
        "--phrasebert",
        default="",
        help="a Hugging Face folder that reads phrases by themselves; default: --model",
    )


def load_base(options: Namespace) -> Base:
    """Return the models of the options."""
    return Base.from_encoder(
        encoders.load_model(options).encoder, options.spanbert, options.phrasebert
    )
