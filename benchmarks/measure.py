"""Measure the model that ships, step by step: ``python -m benchmarks.measure`` (`make measure`).

After an exchange of weights all that depends on them is fitted, checked and measured again. A step
that is done is not repeated for the same weights (`--again STEP` repeats it), so an interrupted run
goes on. The bundled sample is asked right after the fits: weights that do not answer it are not
measured any further.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks import results
from hybrid_search.encoder import SHIPPED, model_folder

ROOT = results.ROOT.parent
STAMPS = ROOT / ".benchmarks" / "measure"
SGD_CALLS = results.DATA / "calls_sgd" / "calls.jsonl.gz"

Command = Sequence[str]


def _python(module: str, *arguments: str) -> Command:
    return (sys.executable, "-m", module, *arguments)


_SAMPLE = "tests/house/test_sample.py"
_CALLS_SGD = ("--url", "embedded:.benchmarks", "--index", "calls_sgd")
"""The index that the measures of retrieval leave."""

STEPS: Mapping[str, Sequence[Command]] = {
    "codebook": [_python("export.codebook", "--model", str(SHIPPED))],
    "prior": [_python("export.boundaries", "--model", str(SHIPPED))],
    "old indexes": [("sh", "-c", "rm -rf .benchmarks/*.index")],  # of the weights before
    "calibration": [_python("benchmarks.quality.calibrate")],
    "probabilities": [_python("benchmarks.quality.mentions", "--fit")],
    "sample": [_python("pytest", "-q", _SAMPLE, "-k", "first_hits_are_right")],
    "quality": [
        _python("benchmarks.quality", "--all"),
        _python("benchmarks.quality.codes"),
    ],
    "mining": [
        _python("hybrid_search", "ingest", str(SGD_CALLS), *_CALLS_SGD),  # what is not there yet
        _python("benchmarks.quality.mining", *_CALLS_SGD),
        _python("benchmarks.quality.mining", *_CALLS_SGD, "--feedback", "10"),
        _python("benchmarks.quality.missed", *_CALLS_SGD),
        _python("benchmarks.quality.rules"),
    ],
    "discovery": [("make", "discovery")],
    "sizes": [_python("benchmarks.quality.sizes")],
    "speed": [_python("benchmarks.speed")],
    "meaning": [("make", "meaning")],
    "papers": [("make", "papers")],
    "peers": [("make", "peers")],
    "pages": [("make", "pages")],
}
"""The commands of each step, in this order."""


def run_steps(steps: Mapping[str, Sequence[Command]], folder: Path) -> None:
    """Run the steps that have no stamp in `folder`, which also gets their output.

    Raises:
        SystemExit: If a command fails; it names the step and the file of what was printed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, commands in steps.items():
        stamp = folder / name
        if stamp.exists():
            print(f"{name}: done before", flush=True)
            continue
        began = time.monotonic()
        log = stamp.with_suffix(".log")
        with log.open("w", encoding="utf-8") as output:
            for command in commands:
                done = subprocess.run(
                    command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT, check=False
                )
                if done.returncode:
                    raise SystemExit(f"{name}: {' '.join(command)} failed, see {log}")
        stamp.touch()
        print(f"{name}: {time.monotonic() - began:.0f} s", flush=True)


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=STEPS, default=list(STEPS), metavar="STEP")
    parser.add_argument("--again", nargs="+", choices=STEPS, default=[], metavar="STEP")
    options = parser.parse_args()
    settings = model_folder.read(SHIPPED)
    folder = STAMPS / settings.fingerprint
    for name in options.again:
        (folder / name).unlink(missing_ok=True)
    run_steps({name: STEPS[name] for name in STEPS if name in options.only}, folder)


if __name__ == "__main__":
    main()
