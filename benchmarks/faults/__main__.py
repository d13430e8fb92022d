"""Run the campaign: ``python -m benchmarks.faults``, or ``make break``."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks.faults import campaign
from benchmarks.faults.families import FAMILIES


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=campaign.SEED)
    parser.add_argument("--short", action="store_true", help="a few faults of each kind")
    parser.add_argument(
        "--family", action="append", choices=FAMILIES, help="only this family; may be repeated"
    )
    parser.add_argument("--only", metavar="ID", help="only the trial of this id")
    parser.add_argument("--workers", type=int, default=campaign.WORKERS)
    parser.add_argument("--limit", type=int, help="only so many trials, by chance")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")
    parser.add_argument("--save", action="store_true", help="write it to results/faults")
    parser.add_argument("--log", type=Path, help="write every outcome to this file, one a line")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=campaign.choose_memory()) as folder:
        sys.exit(campaign.run(options, Path(folder)))


if __name__ == "__main__":
    main()
