"""``doctor``: what is the matter, and what to do."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial

import typer

from hybrid_search import config
from hybrid_search.cli import options
from hybrid_search.config import DEFAULT_INDEX

MARKS = {"ok": "ok     ", "warning": "warning", "problem": "PROBLEM"}


def doctor(
    index: options.Index = DEFAULT_INDEX,
    url: options.Url = None,
    model: options.Model = None,
    device: options.Device = None,
    precision: options.Precision = None,
    as_json: options.Json = False,
) -> None:
    """Look at all that a run needs: Python, packages, ONNX Runtime, device, model, cache, and the
    place of the indexes; and say what to do.

    Nothing is changed. Exit status: 0, or 1 if there is a problem (warnings are none).
    """
    with options.report_errors():
        from hybrid_search.maintenance.doctor import examine

        checks = []
        for check in examine(
            partial(config.settings, url, model, device, precision=precision), index
        ):
            checks.append(check)
            if not as_json:
                typer.echo(
                    f"{MARKS[check.state]} {check.name}: {check.found}"
                    + (f" -> {check.remedy}" if check.remedy else "")
                )
        if as_json:
            options.print_json({"checks": [asdict(check) for check in checks]})
    raise typer.Exit(1 if any(check.state == "problem" for check in checks) else 0)
