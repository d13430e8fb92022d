"""What the commands that fit a file of a model folder have in common: options and progress."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks import results


def make_parser(module: str, documentation: str | None) -> argparse.ArgumentParser:
    """Return the parser of ``python -m MODULE``, described by its module's first line."""
    parser = argparse.ArgumentParser(
        prog=f"python -m {module}", description=(documentation or "").splitlines()[0]
    )
    parser.add_argument(
        "--model", type=Path, required=True, help="a folder made by python -m export.to_onnx"
    )
    parser.add_argument("--data", type=Path, default=results.DATA, help="the folder of data sets")
    parser.add_argument("--seed", type=int, default=1)
    return parser


def report(progress: str) -> None:
    """Print a line of progress, on standard error."""
    print(progress, file=sys.stderr, flush=True)
