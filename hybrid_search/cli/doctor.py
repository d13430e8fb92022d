"""The command ``doctor``: report problems of an installation, with remedies."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial

from hybrid_search import config
from hybrid_search.cli import options
from hybrid_search.config import DEFAULT_INDEX

MARKS = {"ok": "ok     ", "warning": "warning", "problem": "PROBLEM"}


def doctor(
    index: options.Index = DEFAULT_INDEX,
    *,
    place: options.Place,
    as_json: options.Json = False,
) -> None:
    """Check everything that a run needs, and say what to do about each problem.

    Python, packages, telemetry, ONNX Runtime, device, model, and the folder or server of the
    indexes are checked. Nothing is changed. Exit status: 0, also with warnings, or 1 if there is a
    problem.
    """
    from hybrid_search.maintenance.doctor import examine

    checks = []
    for check in examine(partial(config.settings, **place), index):
        checks.append(check)
        if not as_json:
            remedy = f" -> {check.remedy}" if check.remedy else ""
            options.print_lines(f"{MARKS[check.state]} {check.name}: {check.found}{remedy}")
    if as_json:
        options.print_json({"checks": [asdict(check) for check in checks]})
    if any(check.state == "problem" for check in checks):
        options.exit_with(1)
