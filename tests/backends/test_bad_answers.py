"""Answers of servers that are broken, foreign or hostile.

They end in our error, never in another one or in no end, or the result is that of a good answer.
"""

from __future__ import annotations

import ast
import gc
import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import hybrid_search
from hybrid_search.backends.server import answers, next_version, request_bodies, writer
from hybrid_search.backends.server.dialects import DIALECTS
from hybrid_search.backends.server.transport import retry
from hybrid_search.backends.server.transport.shape import ShapeError
from hybrid_search.client import Client
from hybrid_search.config import Settings
from hybrid_search.credentials import Access
from hybrid_search.errors import HybridSearchError, ServerError
from hybrid_search.maintenance.doctor import server as doctor
from hybrid_search.search import calibration
from hybrid_search.search.calibration import Calibration
from hybrid_search.search.result import Result
from tests.helpers.bad_answers import ANYWHERE, ENDLESS, HARMLESS, find_kind
from tests.helpers.bad_answers.exchange import BadAnswer
from tests.helpers.fake_cluster import DOCUMENTS, FakeCluster
from tests.helpers.fake_server import HttpRequest, RawReply, Reply, ScriptedServer

pytestmark = pytest.mark.faults

ENGINES = tuple(DIALECTS)
BAD_ANSWERS = {name: kind for name, kind in {**ANYWHERE, **HARMLESS}.items() if name not in ENDLESS}
"""The campaign of `make break` tries those that need seconds too."""
ACCESS = Access(timeout=10.0, patience=0, answer_megabytes=1)
IMPATIENT = replace(ACCESS, timeout=0.5)

Operation = Callable[[Client], Any]
FindSilent = Callable[[Iterable[tuple[str, str]]], list[tuple[str, str, Any]]]


@pytest.fixture(autouse=True)
def collect_between_tests() -> Iterator[None]:
    """An answer nested too deep ends in a RecursionError, and pytest cannot report from there.

    So what finalizers say is not to be collected at that depth.
    """
    gc.disable()
    yield
    gc.enable()
    gc.collect()


def summarize(summary: Any) -> dict[str, Any]:
    names = ("documents", "passages", "rejected")
    return {name: getattr(summary, name) for name in names}


def run_query(client: Client) -> Any:
    return report_result(
        client.query("money back", highlight=True, facets=["sector"], facets_over="matches")
    )


def report_result(result: Result) -> dict[str, Any]:
    values = result.to_dict()
    names = ("hits", "facets", "total")
    return {name: values.get(name) for name in names} | {"warnings": result.plan.get("warnings")}


def run_doctor(client: Client) -> Any:
    checks = list(doctor.checks(client._settings, "calls"))
    assert not [check for check in checks if check.remedy.startswith("the check itself failed")]
    return [(check.name, check.state) for check in checks]


def run_verify(client: Client) -> Any:
    return client.verify("calls").to_dict() | {"seconds": 0}


OPERATIONS: dict[str, Operation] = {
    "query": run_query,
    "ingest": lambda client: summarize(
        client.ingest([*DOCUMENTS, {"id": "new", "text": "a new one"}])
    ),
    "describe": lambda client: client.describe("calls"),
    "list": lambda client: client.indexes(),
    "delete": lambda client: client.delete(["loan"]),
    "drop": lambda client: client.drop("calls"),
    "verify": run_verify,
    "doctor": run_doctor,
    "reindex": lambda client: summarize(client.reindex("calls")),
    "setup": lambda client: client.setup("calls", options={"shards": "1"}),
}


@pytest.fixture(autouse=True)
def _quick(tiny_encoder: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tiny encoder, and two tries at once of what may pass by itself."""
    monkeypatch.setattr(calibration, "load", lambda *_: Calibration())
    monkeypatch.setattr(retry, "REQUEST", replace(retry.REQUEST, tries=2, first=0.001))
    monkeypatch.setattr(next_version, "PATIENCE", 0)
    monkeypatch.setattr(writer, "NOTES_SECONDS", 0)


class Saboteur:
    """A script that answers well, except for requests of one `path`, which get a bad answer."""

    def __init__(self, engine: str) -> None:
        self.cluster = FakeCluster(engine)
        self.bad: BadAnswer | None = None
        self.place = ""
        self.places: dict[str, None] = {}

    def __call__(self, request: HttpRequest) -> Reply | RawReply:
        place = f"{request.method} {re.sub(r'-00000.', '', request.target.partition('?')[0])}"
        self.places[place] = None
        if self.bad is None or self.place not in (place, "everywhere"):
            return self.cluster(request)
        return self.bad(self.cluster.prepare(request))


def run(server: ScriptedServer, engine: str, operation: Operation, access: Access) -> Any:
    """Return what an operation gives, or its error if it is one of ours."""
    client = Client(Settings(f"{engine}+{server.url}", None, "cpu", access))
    try:
        return operation(client)
    except HybridSearchError as error:
        return error
    finally:
        client.close()


EMPTY = {
    "an empty object",
    "a list",
    "no type",
    "gzip of a list",
    "unknown compression",
    "a negative length",
    "a length that is no number",
    "a status without meaning",
    "401",
    "403",
}
MAY_BE_EMPTY = {
    ("list", "GET /_all/_mapping"),
    ("list", "GET /_alias"),
    ("list", "everywhere"),
}
"""Where an empty answer is a good one: no indexes."""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_bad_answer_ends_in_our_error_or_makes_no_difference(name: str, engine: str) -> None:
    """Each kind is tried with one engine, at one place or at all places at once, in turn."""
    kinds = list(BAD_ANSWERS)[ENGINES.index(engine) :: len(ENGINES)]
    with sabotage(name, engine) as (places, find_silent):
        assert not find_silent(zip(kinds, itertools.cycle(places), strict=False))


@pytest.mark.long
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", OPERATIONS)
def test_each_bad_answer_is_told_wherever_it_is_given(name: str, engine: str) -> None:
    with sabotage(name, engine) as (places, find_silent):
        assert not find_silent(itertools.product(BAD_ANSWERS, places))


@contextmanager
def sabotage(name: str, engine: str) -> Iterator[tuple[list[str], FindSilent]]:
    """Yield the places of an operation's requests, and what tries kinds of bad answers there.

    It returns kind, place and result where the result is another than the good one, and no error.
    """
    operation, saboteur = OPERATIONS[name], Saboteur(engine)

    def find_silent(kinds: Iterable[tuple[str, str]]) -> list[tuple[str, str, Any]]:
        silent = []
        for kind, place in kinds:
            saboteur.bad, saboteur.place = BAD_ANSWERS[kind], place
            result = run(server, engine, operation, IMPATIENT)
            is_good = result == good or (kind in EMPTY and (name, place) in MAY_BE_EMPTY)
            silent += [] if is_good or is_told(name, result) else [(kind, place, result)]
        return silent

    with ScriptedServer(saboteur) as server:
        good = run(server, engine, operation, ACCESS)
        assert not isinstance(good, HybridSearchError), good
        yield [*saboteur.places, "everywhere"], find_silent


def is_told(name: str, result: Any) -> bool:
    """Return whether a result says that something is wrong."""
    if isinstance(result, HybridSearchError):
        return len(str(result)) > 20
    if name == "query":
        return bool(result["warnings"])
    if name == "describe":  # a login that may not ask for the size gets a warning
        return result.bytes is None
    if name in ("ingest", "reindex"):
        return bool(result["rejected"])
    if name == "verify":
        return bool(result["wrong"])
    return name == "doctor" and any(state != "ok" for _, state in result)


def test_every_request_says_what_it_reads_of_its_answer() -> None:
    package = Path(hybrid_search.__file__).parent
    calls = [
        (path.name, call.lineno, {keyword.arg for keyword in call.keywords})
        for path in package.rglob("*.py")
        if "transport" not in path.parts or path.name == "plugins.py"
        for call in find_requests(path)
    ]
    assert len(calls) > 15
    assert not [call for call in calls if not call[2] & {"read", None}]


def find_requests(path: Path) -> list[ast.Call]:
    """Return the calls of `Server.request` in a module, without those of HEAD."""
    calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    return [
        call
        for call in calls
        if ast.unparse(call.func).endswith(".request") and "'HEAD'" not in ast.unparse(call)
    ]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["verify", "reindex"])
def test_a_listing_with_every_hit_twice_is_an_error(name: str, engine: str) -> None:
    """A server never lists a passage again after another one: each would count twice."""
    saboteur = Saboteur(engine)
    saboteur.bad, saboteur.place = find_kind("search", "every hit twice"), "POST /calls/_search"
    with ScriptedServer(saboteur) as server:
        result = run(server, engine, OPERATIONS[name], ACCESS)
    assert isinstance(result, ServerError)
    assert "gave a passage of 'calls" in str(result)


def test_a_start_beyond_any_text_is_another_shape() -> None:
    """Offsets have 32 bits: the sum with a larger number would not be one."""
    read = answers.read_search(request_bodies.contents_body(["a#0"]))
    hit = {"_id": "a#0", "_source": {"start": 0, "text": "a", "layout": "[]"}}
    read({"hits": {"hits": [hit]}})
    hit["_source"] = {"start": 2**70, "text": "a", "layout": "[]"}
    with pytest.raises(ShapeError, match="start must be less than 2147483648"):
        read({"hits": {"hits": [hit]}})


def test_a_score_that_is_no_number_is_another_shape() -> None:
    read = answers.read_search(request_bodies.KEYS)
    hit = {"fields": {"document_id": ["a"], "ordinal": [0]}, "_score": 1}
    read({"hits": {"hits": [hit]}})
    for score in (True, "1.5", None, float("nan")):
        with pytest.raises(ShapeError, match="_score"):
            read({"hits": {"hits": [hit | {"_score": score}]}})
