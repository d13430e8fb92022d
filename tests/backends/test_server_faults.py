"""Servers that are lost, slow or busy, or accept half of what they are sent.

Afterwards every document is there exactly once, or an error says so.
"""

from __future__ import annotations

import json
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from hybrid_search.backends import open_backend
from hybrid_search.backends.server.transport import retry
from hybrid_search.backends.types import IndexSpec
from hybrid_search.config import DEFAULT_POLICY
from hybrid_search.credentials import Access
from hybrid_search.encoder import Encoder
from hybrid_search.errors import IndexMissingError, ServerError
from hybrid_search.ingest import pipeline, prepare
from hybrid_search.ingest.sources import files
from hybrid_search.maintenance import reindex
from tests.conftest import DATA
from tests.helpers import fault_proxy
from tests.helpers.cli import run_cli
from tests.helpers.fake_server import HttpRequest, Reply
from tests.helpers.fault_proxy import KINDS, TIMEOUT, EveryThirdRequest, Plan, Proxy
from tests.helpers.server_index import (
    Call,
    RawIndex,
    assert_index_holds,
    expected_passages,
    find_skipped_ids,
    make_call,
    make_calls,
    outline_passages,
)
from tests.helpers.tiny_encoder import make_entries, make_request, make_spec
from tools.servers.layout import free_port

pytestmark = pytest.mark.server


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small blocks, so that a few hundred documents are many requests, and short pauses."""
    monkeypatch.setattr(pipeline, "BLOCK_PASSAGES", 48)
    monkeypatch.setattr(prepare, "LOOKUP_DOCUMENTS", 40)
    monkeypatch.setattr(retry, "REQUEST", replace(retry.REQUEST, first=0.1))


# A proxy that injures a third of the requests

BAD: dict[str, Callable[[int], Call | bytes]] = {
    "not JSON: ": lambda _: b'{"id": "bad',
    "no id": lambda _: b'{"text": "whose"}',
    "the text is empty": lambda number: {"id": f"bad-{number}", "text": " "},
    "metadata field 'sector' is a number here and a string": lambda number: (
        make_call(number, "bad", 5) | {"sector": number}
    ),
    "the server refused it: [a-z_]+ \\(400\\)": lambda number: (
        make_call(number, "bad", 5) | {f"field{number}x{field}": field for field in range(1100)}
    ),
}
"""Lines that are refused, by the beginning of the reason; the last one only by the server."""


def make_mixed_lines() -> tuple[list[Call | bytes], dict[int, str]]:
    """Return 200 lines, and by number why 20 of them are refused.

    They are 150 calls and second versions of 30 of them, shorter or longer, some soon after the
    first.
    """
    first = make_calls("first", lambda number: 3 + number % 4, 150)
    second = make_calls("second", lambda number: 3 + (number + 2) % 4, 90)[60:]
    lines: list[Call | bytes] = []
    refused: dict[int, str] = {}
    for number, good in enumerate([*first[:75], *reversed(second[:15]), *first[75:], *second[15:]]):
        lines.append(good)
        for kind, (reason, bad) in enumerate(BAD.items()):
            if number % 45 == 20:
                lines.append(bad(900 + number + kind))
                refused[len(lines)] = reason
    return lines, refused


def good_documents(lines: Sequence[Call | bytes], refused: Mapping[int, str]) -> list[Call]:
    return [
        line
        for number, line in enumerate(lines, 1)
        if isinstance(line, dict) and number not in refused
    ]


def latest_versions(documents_: Iterable[Call]) -> list[Call]:
    """Return the calls without those that a later one replaces."""
    return list({document["id"]: document for document in documents_}.values())


def assert_injured(proxy: Proxy) -> None:
    """Assert that every kind of fault happened, and to a third of the requests."""
    print(f"{proxy.request_count} requests, and {proxy.fault_counts}")
    assert set(proxy.fault_counts) == {kind.__name__ for kind in KINDS}
    assert proxy.fault_counts.total() == pytest.approx(proxy.request_count / 3, abs=2)


def test_every_good_document_is_there_once_and_every_bad_one_is_told_of(
    place: RawIndex, hurried: None
) -> None:
    lines, refused = make_mixed_lines()
    assert (len(lines), len(refused)) == (200, 20)
    written = good_documents(lines, refused)
    with Proxy(place.url, EveryThirdRequest(seed=1)) as proxy:
        summary = place.ingest(lines, proxy.url, timeout=TIMEOUT)
    assert_injured(proxy)
    assert_index_holds(place, latest_versions(written))
    reasons_by_line = {
        reject["line"]: reject["reason"]
        for reject in map(json.loads, Path("rejected.jsonl").read_text().splitlines())
    }
    assert sorted(reasons_by_line) == sorted(refused)
    assert all(re.match(refused[line], reasons_by_line[line]) for line in refused), reasons_by_line
    assert sorted(
        note["line"]
        for note in place.fetch_passages(f"{place.index}-rejected", sort=("line",)).values()
    ) == sorted(refused)
    assert (
        summary.read,
        summary.documents,
        summary.duplicates,
        summary.failed,
        summary.skipped,
    ) == (200, 180, 30, 20, 0)
    passages = [entry for document in written for entry in make_entries(document)]
    assert (summary.passages, summary.spans) == (
        len(passages),
        sum(entry.spans for entry in passages),
    )


@pytest.mark.long
@pytest.mark.data
def test_two_thousand_calls_are_there_once(
    place: RawIndex, real_encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As users run it: the shipped model, blocks and pauses as they are.

    A bulk request may take a busy server seconds, so clients wait longer.
    """
    monkeypatch.setattr(fault_proxy, "LATE", 15.5)
    documents_ = [
        json.loads(line.data)
        for line in islice(files.read([str(DATA / "calls_sgd" / "calls.jsonl.gz")]), 2000)
    ]
    with Proxy(place.url, EveryThirdRequest(seed=4)) as proxy:
        summary = place.ingest(documents_, proxy.url, real_encoder, timeout=15)
    assert_injured(proxy)
    assert (summary.read, summary.documents, summary.failed) == (2000, 2000, 0)
    assert_index_holds(
        place,
        documents_,
        partial(
            outline_passages, index_spec=IndexSpec.from_encoder(real_encoder.info, DEFAULT_POLICY)
        ),
    )
    assert place.ingest(documents_, encoder=real_encoder).skipped == 2000


def test_new_versions_replace_the_old_ones_and_what_is_unchanged_is_skipped(
    place: RawIndex, hurried: None
) -> None:
    first = make_calls("first", lambda number: 2 + number % 8, 60)
    place.ingest(first)
    then = [*make_calls("second", lambda number: 9 - number % 8, 40), *first[40:]]
    with Proxy(place.url, EveryThirdRequest(seed=2)) as proxy:
        summary = place.ingest(then, proxy.url, timeout=TIMEOUT)
    assert (summary.documents, summary.skipped, summary.failed) == (40, 20, 0)
    assert_index_holds(place, then)


def fail_at_first(*kinds: fault_proxy.Fault) -> Plan:
    """Return a plan in which each request suffers each of `kinds` in turn before it succeeds."""
    before: Counter[tuple[str, str, bytes]] = Counter()
    lock = threading.Lock()

    def plan(http_request: HttpRequest) -> fault_proxy.Fault | None:
        key = (http_request.method, http_request.target, http_request.body)
        with lock:
            remaining = [kind for kind in kinds if fault_proxy.is_applicable(kind, http_request)][
                before[key] :
            ]
            before[key] += 1
        return remaining[0] if remaining else None

    return plan


def test_an_index_lives_and_dies_where_no_request_succeeds_at_once(
    place: RawIndex, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(retry, "REQUEST", replace(retry.REQUEST, first=0.02))
    plan = fail_at_first(fault_proxy.lose_answer, fault_proxy.report_unavailable)
    first, second = make_calls("first", lambda _: 8, 6), make_calls("second", lambda _: 3, 2)
    with Proxy(place.url, plan) as proxy, closing(open_backend(proxy.url)) as backend:
        summary = place.ingest([*first, {"id": "bad"}, *second], proxy.url)
        assert (summary.documents, summary.duplicates, summary.failed) == (8, 2, 1)
        assert_index_holds(place, [*second, *first[2:]])
        assert backend.describe_index(place.index).documents == 6
        assert len(place.fetch_passages(f"{place.index}-rejected", sort=("line",))) == 1
        found = backend.find(place.index, make_request("second word7"))
        assert len(found.passages) == len(place.fetch_passages())
        with backend.writer(place.index, make_spec()) as writer:
            assert writer.delete(["call-000", "call-005"]) == 2
        assert_index_holds(place, [second[1], *first[2:5]])
        assert (
            reindex.copy_index(backend, place.index, None, {"m": "8"}, lambda _: None).documents
            == 4
        )
        assert place.list_names() == [f"{place.index}-000002", f"{place.index}-rejected"]
        backend.drop_index(place.index)
        assert place.list_names() == []
        with pytest.raises(IndexMissingError):
            backend.describe_index(place.index)
    messages = [
        record.getMessage() for record in caplog.records if record.name.startswith("hybrid_search")
    ]
    passing = (
        "trying again",
        "the last one wins",
        "makes one call of them",
        "waiting for it, up to 600 s",
    )  # the last, and its end, where the machine is busy
    assert [
        message
        for message in messages
        if not message.endswith(passing) and "answers again, after" not in message
    ] == []


def collect_answers(place: RawIndex, url: str) -> list[Any]:
    """Return everything that can be read."""
    results: list[Any] = []
    with closing(open_backend(url, Access(timeout=TIMEOUT))) as backend:
        for number in range(9):
            query_request = make_request(f"second word{number} word{7 * number}")
            found = backend.find(place.index, query_request).passages
            keys = [passage.key for passage in found]
            stored = [
                (passage.key, passage.bm25, passage.tokens.residuals.tobytes()) for passage in found
            ]
            results += [
                stored,
                backend.fetch_contents(place.index, keys[:5]),
                backend.find_highlights(place.index, query_request, keys[:5]),
            ]
        results += [
            backend.count_facets(place.index, make_request("first"), ["sector"]),
            backend.describe_index(place.index),
            backend.read_head(place.index),
        ]
    return results


def test_what_is_asked_through_the_proxy_is_answered_as_without_it(
    place: RawIndex, hurried: None
) -> None:
    place.ingest(
        [
            *make_calls("first", lambda number: 2 + number % 8, 40),
            *make_calls("second", lambda _: 5, 10),
        ]
    )
    with Proxy(place.url, EveryThirdRequest(seed=3)) as proxy:
        assert collect_answers(place, proxy.url) == collect_answers(place, place.url)
    assert_injured(proxy)


# A server that does not take everything


def ordinal(action: bytes) -> int:
    ((_, action_fields),) = json.loads(action.splitlines()[0]).items()
    return int(action_fields["_id"].rpartition("#")[2])


def refuse_untaken(is_taken: Callable[[bytes], bool], refusal: dict[str, Any]) -> Plan:
    """Return a plan in which bulk requests accept only the actions in `taken`."""

    def refuse(forward: fault_proxy.Forward, http_request: HttpRequest, _: random.Random) -> Reply:
        return fault_proxy.forward_part(forward, http_request, is_taken, refusal)

    return lambda http_request: (
        refuse if fault_proxy.endpoint_name(http_request) == "_bulk" else None
    )


def test_a_server_that_stays_busy_is_one_error_and_nothing_half_written_passes_for_whole(
    place: RawIndex,
) -> None:
    documents_ = [*make_calls("first", lambda _: 1, 20), *make_calls("first", lambda _: 8, 40)[20:]]
    with (
        Proxy(
            place.url, refuse_untaken(lambda action: ordinal(action) != 1, fault_proxy.REJECTED)
        ) as proxy,
        pytest.raises(
            ServerError,
            match=r"did not accept \d+ passages .*'call-020#1'.*: .*the queue is full.* run the "
            r"same command again",
        ) as raised,
    ):
        place.ingest(documents_, proxy.url, patience=1.0)
    assert raised.value.status == 429
    assert find_skipped_ids(place, documents_) == {f"call-{number:03d}" for number in range(20)}
    summary = place.ingest(documents_)
    assert (summary.skipped, summary.documents) == (20, 20)
    assert_index_holds(place, documents_)


def test_a_document_of_which_one_passage_is_refused_leaves_nothing_behind_and_the_others_go_on(
    place: RawIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        pipeline, "BLOCK_PASSAGES", 1
    )  # so that a document is refused when most of its passages were handed on long ago
    place.ingest(make_calls("first", lambda _: 8, 6))
    then = make_calls("second", lambda _: 5, 6)
    refusal = {
        "status": 400,
        "error": {"type": "document_parsing_exception", "reason": "not this one"},
    }
    with Proxy(
        place.url,
        refuse_untaken(
            lambda action: (
                b'"index"' not in action or b'"call-003#1"' not in action.splitlines()[0]
            ),
            refusal,
        ),
    ) as proxy:
        summary = place.ingest(then, proxy.url)
    assert (summary.documents, summary.failed) == (5, 1)
    written = [*then[:3], *then[4:]]
    assert summary.passages == sum(len(expected_passages(document)) for document in written)
    (line,) = Path("rejected.jsonl").read_text().splitlines()
    entry = json.loads(line)
    assert entry["reason"] == "the server refused it: document_parsing_exception (400)"
    assert entry["detail"] == "document_parsing_exception: not this one"
    assert_index_holds(place, [document for document in then if document["id"] != "call-003"])
    assert place.ingest(then).documents == 1
    assert_index_holds(place, then)


def test_a_server_that_is_down_is_one_error_after_a_bounded_wait(tmp_path: Path) -> None:
    source = tmp_path / "calls.jsonl"
    source.write_text(json.dumps(make_call(0, "first", 2)) + "\n")
    url = f"opensearch+http://127.0.0.1:{free_port()}"
    started_at = time.monotonic()
    ran = run_cli("--index", "calls", "--url", url, str(source), module="hybrid_search.ingest")
    assert time.monotonic() - started_at < 60
    assert re.match(
        rf"no answer from {re.escape(url)} to GET /calls: Connection refused "
        rf".*\(after 6 tries",
        ran.error,
    ), ran.error
    assert ran.stdout == ""
    assert not Path("calls.rejected.jsonl").exists()
