"""Count the processor time of a cold start's answer: ``python -m benchmarks.speed.first_answer``.

A new process answers one query on the hard sample, as a person's first command does. Beside it
stand a process that only imports the library, and what it cannot do without: Python with numpy and
ONNX Runtime.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks import results
from benchmarks.quality import hard_sample

ROUNDS = 20

PHRASE = "waiting on hold"

PROGRAMS: Mapping[str, Sequence[str]] = {
    "import hybrid_search": ("-c", "import hybrid_search"),
    "numpy and ONNX Runtime imported": ("-c", "import onnxruntime"),
    "query": ("-m", "hybrid_search", "query", PHRASE),
}


def measure(rounds: int) -> dict[str, dict[str, float]]:
    """Return the seconds of processor time of each program, by its name; they run in turns."""
    seconds: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "HYBRID_SEARCH_URL": f"embedded:{Path(folder) / 'store'}"}
        # compiled modules are read, as by every user after the first command
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        count_seconds(("-m", "hybrid_search", "ingest", str(hard_sample.CALLS)), environment)
        for _ in range(rounds):
            for name, arguments in PROGRAMS.items():
                seconds[name].append(count_seconds(arguments, environment))
    return {name: summarize(values) for name, values in seconds.items()}


def count_seconds(arguments: Sequence[str], environment: Mapping[str, str]) -> float:
    """Return the processor time of one run of Python, in seconds."""
    started = read_seconds()
    subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, check=True)
    return read_seconds() - started


def read_seconds() -> float:
    """Return the processor time of all processes that this one started and that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def summarize(values: Sequence[float]) -> dict[str, float]:
    """Return the median and the least, in seconds."""
    return {"median": round(statistics.median(values), 3), "least": round(min(values), 3)}


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="runs of each program")
    rounds = parser.parse_args().rounds
    answer = {"rounds": rounds, "seconds of processor time": measure(rounds)}
    results.write("first_answer-sample", answer, results.SPEED)


if __name__ == "__main__":
    main()
