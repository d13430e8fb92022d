"""The committed results of the evaluations: one JSON file for each task and system."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks import results

RESULTS = Path(__file__).parent / "results"


def result_name(task: str, system: str) -> str:
    """Return the name of the result of a system on a task."""
    return f"{task}_{system}"


def read_measured(task: str, system: str, folder: Path | None = None) -> dict[str, Any] | None:
    """Return the result of a system on a task, or None if it has not been measured."""
    name, folder = result_name(task, system), folder or RESULTS
    return results.read_result(name, folder) if results.has_result(name, folder) else None
