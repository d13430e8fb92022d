"""What is the matter with an installation: each thing that a run needs, looked at by itself, and what to do about it. Nothing is changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from hybrid_search.config import Settings
from hybrid_search.doctor import embedded, machine, model, server
from hybrid_search.doctor.check import Check, attempt, problem
from hybrid_search.errors import UsageError

__all__ = ["Check", "examine"]

Checks = Callable[[], Iterable[Check]]


def examine(settings: Callable[[], Settings], index: str) -> Iterator[Check]:
    """Every check, each when it is done. `settings` may raise UsageError, which is a finding; then only the machine is looked at."""
    yield from attempt("python", machine.python)
    yield from attempt("packages", machine.packages)
    yield from attempt("onnxruntime", machine.runtime)
    try:
        asked = settings()
    except UsageError as error:
        yield problem("settings", str(error), "mend what it names, and run this again")
        return
    for name, check in (*_model(asked), *_store(asked, index)):
        yield from (_scrubbed(each, asked) for each in attempt(name, check))


def _model(asked: Settings) -> Sequence[tuple[str, Checks]]:
    return (
        ("device", partial(machine.device, asked.device)),
        ("cache", machine.cache),
        ("model", partial(model.folder, asked)),
        ("encoder", partial(model.encoder, asked)),
    )


def _store(asked: Settings, index: str) -> Sequence[tuple[str, Checks]]:
    scheme, _, rest = asked.url.partition(":")
    if scheme.endswith(("http", "https")):
        return (("server", partial(server.checks, asked, index)),)
    if scheme == "embedded":
        return (("store", partial(embedded.checks, rest)), ("index", partial(model.index, asked, index)))
    return (("index", partial(model.index, asked, index)),)


def _scrubbed(check: Check, asked: Settings) -> Check:
    """Servers and proxies sometimes say what they were sent."""
    return replace(check, found=asked.access.scrub(check.found), remedy=asked.access.scrub(check.remedy))
