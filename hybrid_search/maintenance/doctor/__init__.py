"""Check all that a run needs, one by one, with a remedy for each problem.

In: the settings of a run and the name of an index. Out: one `Check` after the other; an error in
one hides no other, and nothing is changed. In reading order:

    check      the result of one check, and how errors become results
    machine    Python, distribution, packages, telemetry, ONNX Runtime, device, folder of indexes
    model      the model folder, its fitted parts, the encoder, and whether it made an index
    server     a server: login, version, plugins, health, privileges

A new check is a generator of `Check` in one of these, with a line in `_model_checks` or
`_store_checks` below.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from hybrid_search.config import Settings
from hybrid_search.errors import UsageError
from hybrid_search.maintenance.doctor import machine, model, server
from hybrid_search.maintenance.doctor.check import Check, attempt, problem

__all__ = ["Check", "examine"]

Checks = Callable[[], Iterable[Check]]


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
        resolved_settings = settings()
    except UsageError as error:
        yield problem(
            "settings", str(error), "correct the setting that it names, then run doctor again"
        )
        return
    for name, check in (
        *_model_checks(resolved_settings),
        *_store_checks(resolved_settings, index),
    ):
        yield from (_scrub(result, resolved_settings) for result in attempt(name, check))


def _model_checks(settings: Settings) -> Sequence[tuple[str, Checks]]:
    return (
        ("device", partial(machine.device, settings.device)),
        ("model", partial(model.folder, settings)),
        ("models", model.installed_models),
        ("fitted parts", partial(model.fitted_parts, settings)),
        ("encoder", partial(model.encoder, settings)),
    )


def _store_checks(settings: Settings, index: str) -> Sequence[tuple[str, Checks]]:
    scheme, _, path = settings.url.partition(":")
    if scheme.endswith(("http", "https")):
        return (("server", partial(server.checks, settings, index)),)
    if scheme == "embedded":
        return (
            ("store", partial(machine.store, path)),
            ("index", partial(model.index, settings, index)),
        )
    return (("index", partial(model.index, settings, index)),)


def _scrub(check: Check, settings: Settings) -> Check:
    """Remove secrets from a result: servers and proxies sometimes echo a request."""
    return replace(
        check, found=settings.access.scrub(check.found), remedy=settings.access.scrub(check.remedy)
    )
