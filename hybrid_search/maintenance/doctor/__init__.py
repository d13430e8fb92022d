"""What is the matter with an installation: each thing that a run needs, looked at by itself, and
what to do about it.

Nothing is changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from hybrid_search.config import Settings
from hybrid_search.errors import UsageError
from hybrid_search.maintenance.doctor import embedded, machine, model, server
from hybrid_search.maintenance.doctor.check import Check, attempt, problem

__all__ = ["Check", "examine"]

Checks = Callable[[], Iterable[Check]]


def examine(settings: Callable[[], Settings], index: str) -> Iterator[Check]:
    """Every check, each when it is done.

    `settings` may raise UsageError, which is a finding; then only the machine is looked at.
    """
    yield from attempt("python", machine.python)
    yield from attempt("packages", machine.packages)
    yield from attempt("onnxruntime", machine.runtime)
    try:
        resolved_settings = settings()
    except UsageError as error:
        yield problem("settings", str(error), "mend what it names, and run this again")
        return
    for name, check in (
        *_model_checks(resolved_settings),
        *_store_checks(resolved_settings, index),
    ):
        yield from (_scrub(result, resolved_settings) for result in attempt(name, check))


def _model_checks(settings: Settings) -> Sequence[tuple[str, Checks]]:
    return (
        ("device", partial(machine.device, settings.device)),
        ("cache", machine.cache),
        ("model", partial(model.folder, settings)),
        ("encoder", partial(model.encoder, settings)),
    )


def _store_checks(settings: Settings, index: str) -> Sequence[tuple[str, Checks]]:
    scheme, _, path = settings.url.partition(":")
    if scheme.endswith(("http", "https")):
        return (("server", partial(server.checks, settings, index)),)
    if scheme == "embedded":
        return (
            ("store", partial(embedded.checks, path)),
            ("index", partial(model.index, settings, index)),
        )
    return (("index", partial(model.index, settings, index)),)


def _scrub(check: Check, settings: Settings) -> Check:
    """Servers and proxies sometimes say what they were sent."""
    return replace(
        check, found=settings.access.scrub(check.found), remedy=settings.access.scrub(check.remedy)
    )
