"""``query(compat="opensearch")``: our legs fused by the server's arithmetic."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from hybrid_search import connect
from hybrid_search.backends.types import Request
from hybrid_search.client import Client
from hybrid_search.errors import UsageError
from hybrid_search.search import opensearch
from hybrid_search.search.result import Hit, Result
from tests.helpers import live_servers

PHRASE = "help with my bill, thank you"
OUR_ARITHMETIC = "this library, by the server's arithmetic"


@dataclass(frozen=True, slots=True)
class RawIndex:
    """A client, and the name of an index there that is only read."""

    client: Client
    index: str

    def query(self, **options: Any) -> Result:
        return self.client.query(
            PHRASE, **{"index": self.index, "size": 100, "group_by": "passage", **options}
        )


@pytest.fixture(scope="module", params=["memory", "embedded", *live_servers.SERVERS])
def place(
    request: pytest.FixtureRequest, sample_url: str, calls: list[dict[str, Any]]
) -> Iterator[RawIndex]:
    if request.param == "embedded":
        with connect(sample_url) as client:
            yield RawIndex(client, "calls")
    elif request.param == "memory":
        with connect("memory:") as client:
            client.ingest(calls[:40])
            yield RawIndex(client, "calls")
    else:
        with (
            live_servers.unique_index_name(request.param) as name,
            connect(request.param) as client,
        ):
            client.ingest(calls[:16], index=name)
            yield RawIndex(client, name)


def passage_key(hit: Hit) -> tuple[str, int]:
    return hit.id, hit.passage


def leg_scores(
    place: RawIndex,
) -> tuple[list[tuple[tuple[str, int], float]], list[tuple[tuple[str, int], float]]]:
    """Return both legs, best first: BM25 scores, and the server's scores of cosines."""
    lexical = sorted(
        (hit for hit in place.query(alpha=0.0) if hit.bm25_rank), key=lambda hit: hit.bm25_rank or 0
    )
    semantic = sorted(
        (hit for hit in place.query(alpha=1.0, spans_by="cosine") if hit.cosine_rank),
        key=lambda hit: hit.cosine_rank or 0,
    )
    return [(passage_key(hit), hit.bm25) for hit in lexical], [
        (passage_key(hit), (1 + hit.cosine) / 2) for hit in semantic
    ]


@pytest.mark.parametrize("fusion", ["calibrated", "min_max", "l2", "z_score", "rrf"])
@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
def test_scores_are_those_of_the_servers_arithmetic_over_both_legs(
    place: RawIndex, fusion: str, alpha: float
) -> None:
    """The server lacks calibrated: its default stands for it.

    Both legs count at alpha 0 and 1, too: a passage that only the leg of weight 0 found has 0.
    """
    lexical, semantic = leg_scores(place)
    assert 10 < len(lexical) <= 100
    assert 10 < len(semantic) <= 100
    expected = dict(opensearch.fuse_by_alpha(lexical, semantic, alpha, fusion))
    result = place.query(compat="opensearch", fusion=fusion, alpha=alpha)
    assert result.total == len(expected)
    assert [hit.score for hit in result] == pytest.approx(
        sorted(expected.values(), reverse=True)[:100], abs=1e-6
    )
    assert {passage_key(hit): hit.score for hit in result} == {
        passage_key(hit): pytest.approx(expected[passage_key(hit)], abs=1e-6) for hit in result
    }


def test_min_max_written_out(place: RawIndex) -> None:
    """The first of both legs have 1.0 each, and so 0.3 + 0.7.

    The last of a leg has 0.001, which the server gives where its formula says 0.
    """
    lexical, semantic = leg_scores(place)
    scores = {
        passage_key(hit): hit.score
        for hit in place.query(compat="opensearch", fusion="min_max", alpha=0.3)
    }
    best, worst = semantic[0][1], semantic[-1][1]
    only_semantic, cosine_score = next(
        (candidate, score)
        for candidate, score in semantic[1:]
        if candidate not in dict(lexical) and candidate in scores
    )
    scaled = (cosine_score - worst) / (best - worst)
    assert scores[only_semantic] == pytest.approx(0.3 * scaled, abs=1e-5)


def test_hits_have_their_own_bm25_cosine_and_spans_beside_the_servers_score(
    place: RawIndex,
) -> None:
    plain = {passage_key(hit): hit for hit in place.query(fusion="min_max", spans_by="cosine")}
    pairs = [
        (hit, plain[passage_key(hit)])
        for hit in place.query(compat="opensearch", fusion="min_max", spans_by="cosine", size=10)
    ]
    assert all(
        (hit.cosine, hit.spans) == (plain_hit.cosine, plain_hit.spans) for hit, plain_hit in pairs
    )
    assert all(hit.bm25 == pytest.approx(plain_hit.bm25) for hit, plain_hit in pairs)


def test_documents_are_grouped_by_their_best_passage(place: RawIndex) -> None:
    passages, documents = (
        place.query(compat="opensearch"),
        place.query(compat="opensearch", group_by="document"),
    )
    best: dict[str, float] = {}
    for hit in passages:
        best.setdefault(hit.id, hit.score)
    assert {hit.id: hit.score for hit in documents if hit.id in best} == best


def test_the_plan_says_who_fused_which_legs(place: RawIndex) -> None:
    plan = place.query(compat="opensearch", alpha=0.0).plan
    assert (plan["compat"], plan["fused by"], plan["legs"]) == (
        "opensearch",
        OUR_ARITHMETIC,
        ["bm25", "spans"],
    )
    assert "fused by" not in place.query().plan
    assert "compat" not in place.query().plan


def test_where_the_server_itself_fuses_its_scores_are_taken_and_the_plan_says_so(
    place: RawIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server with the plugin is simulated, since no test server has it: it scores 3 passages."""
    requests: list[tuple[str, float, str, bool, bool]] = []

    def hybrid(index: str, request: Request, alpha: float, technique: str) -> dict[Any, float]:
        requests.append((index, alpha, technique, request.lexical, request.semantic))
        keys = list(place.client.backend.find_candidates(index, request).semantic)[:3]
        return dict(zip(keys, (0.25, 0.75, 0.5), strict=True))

    expected = [
        passage_key(hit)
        for hit in sorted(
            place.query(alpha=1.0, spans_by="cosine"), key=lambda hit: hit.cosine_rank or 0
        )[:3]
    ]
    monkeypatch.setattr(place.client.backend, "fetch_hybrid_scores", hybrid, raising=False)
    result = place.query(compat="opensearch", alpha=0.0, fusion="l2")
    assert requests == [(place.index, 0.0, "l2", True, True)]
    assert [hit.score for hit in result] == [0.75, 0.5, 0.25]
    assert [passage_key(hit) for hit in result] == [expected[1], expected[2], expected[0]]
    assert all(hit.spans and hit.cosine != 0 for hit in result)
    assert (result.plan["fused by"], result.plan["candidates"]) == (
        "the server",
        "the server's hybrid query",
    )


def test_another_compat_is_an_error_that_names_what_there_is(place: RawIndex) -> None:
    with pytest.raises(UsageError, match=r"compat is 'solr'.*'opensearch'"):
        place.query(compat="solr")
