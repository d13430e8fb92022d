"""Check all that a run needs, one by one, with a remedy for each problem.

An error in one hides no other, and nothing is changed. The checks are in `machine`, `model` and
`server`; a new one is a generator of `Check` there, with a line in `examine`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial

from hybrid_search.config import Settings
from hybrid_search.errors import UsageError
from hybrid_search.maintenance.doctor import machine, model, server
from hybrid_search.maintenance.doctor.check import Check, attempt, problem

__all__ = ["Check", "examine"]


def examine(settings: Callable[[], Settings], index: str) -> Iterator[Check]:
    """Yield the result of every check as soon as it is there.

    If `settings` raises UsageError, this is a result too, and only the machine is checked.
    """
    yield from attempt("python", machine.python)
    yield from attempt("distribution", machine.distribution)
    yield from attempt("packages", machine.packages)
    yield from attempt("telemetry", machine.telemetry)
    yield from attempt("onnxruntime", machine.runtime)
    try:
        resolved = settings()
    except UsageError as error:
        remedy = "correct the setting that it names, then run doctor again"
        yield problem("settings", str(error), remedy)
        return
    scheme, _, path = resolved.url.partition(":")
    checks: dict[str, Callable[[], Iterable[Check]]] = {
        "device": partial(machine.device, resolved.device),
        "model": partial(model.folder, resolved),
        "models": model.installed_models,
        "encoder": partial(model.encoder, resolved),
    }
    if scheme.endswith(("http", "https")):
        checks["server"] = partial(server.checks, resolved, index)
    else:
        if scheme == "embedded":
            checks["store"] = partial(machine.store, path)
        checks["index"] = partial(model.index, resolved, index)
    scrub = resolved.access.scrub  # servers and proxies sometimes echo the secrets of a request
    for name, run_checks in checks.items():
        for check in attempt(name, run_checks):
            yield replace(check, found=scrub(check.found), remedy=scrub(check.remedy))
