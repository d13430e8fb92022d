"""All pages of a query are cuts of one list, and a long document takes no other's place in it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from hybrid_search import connect, encoder
from hybrid_search.client import Client
from hybrid_search.errors import UsageError
from hybrid_search.search.query import FUSION_NAMES, Query
from hybrid_search.search.result import Result
from tests.helpers.tiny_encoder import TinyEncoder

PHRASE = "refund my broken kettle"
WORDS = ["refund", "my", "broken", "kettle", *(f"word{number}" for number in range(300))]
TURN_WORDS = 60  # two such turns are more than a passage of 80 words holds

CROWDS, CROWD_TURNS, NEIGHBOURS = 2, 400, 40


def write_turn(chance: random.Random, *words: str) -> dict[str, str]:
    others = chance.choices(WORDS, k=TURN_WORDS - len(words))
    return {"speaker": "customer", "text": " ".join([*words, *others])}


def list_documents() -> dict[str, list[dict[str, Any]]]:
    """Return documents by the name of their index.

    `plain` has 170 calls of three passages. In `crowded` two calls have 800 passages with the very
    phrase, and 40 calls say it in one of theirs, with other words between.
    """
    chance = random.Random(5)  # noqa: S311 (no secret)
    plain = [
        {"id": f"p{number}", "turns": [write_turn(chance) for _ in range(3)], "number": number % 7}
        for number in range(170)
    ]
    crowds = [
        {
            "id": f"crowd{number}",
            "turns": [write_turn(chance, *PHRASE.split()) for _ in range(CROWD_TURNS)],
            "size": "long",
        }
        for number in range(CROWDS)
    ]
    neighbours = [
        {
            "id": f"n{number}",
            "turns": [write_turn(chance, "refund", "a", "broken", "kettle"), write_turn(chance)],
            "size": "short",
        }
        for number in range(NEIGHBOURS)
    ]
    return {"plain": plain, "crowded": [*crowds, *neighbours]}


@pytest.fixture(scope="module")
def filled_client(module_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """The documents on each backend. Only to be read."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoder, "load", lambda *_, **__: TinyEncoder())
        patch.setattr(encoder, "truncate_encoder", lambda full_encoder, *_: full_encoder)
        with connect(module_url) as client:
            for index, documents in list_documents().items():
                rejects = tmp_path_factory.mktemp("pages") / "rejected.jsonl"
                client.ingest(documents, index=index, rejects=rejects)
            yield client


Row = tuple[str, int, float, int]


def list_rows(result: Result) -> list[Row]:
    """Return the hits; which of two spans with the same words comes first may change."""
    return [(hit.id, hit.passage, round(hit.score, 5), len(hit.spans)) for hit in result]


OPTIONS: dict[str, dict[str, Any]] = {
    "both legs": {},
    "BM25": {"alpha": 0.0},
    "spans": {"alpha": 1.0},
    "passages": {"group_by": "passage"},
    "passages by BM25": {"group_by": "passage", "alpha": 0.0},
    "passages by spans": {"group_by": "passage", "alpha": 1.0},
    "cosines": {"alpha": 0.9, "spans_by": "cosine"},
    **{name: {"fusion": name} for name in FUSION_NAMES[1:]},
    "a filter": {"where": {"number": [1, 2, 3, 4, 5]}},
    "feedback": {"feedback": 10},
    "a least score": {"min_score": 0.2},
    "a least probability": {"min_probability": 0.01},
    "a sort": {"sort": "-number"},
    "a sort of passages": {"sort": "id", "group_by": "passage"},
    "facets": {"facets": ["number"]},
}


SEVERAL = ("both legs", "passages", "rrf", "feedback")
"""Options that are asked with several phrases, too."""


@pytest.mark.parametrize(
    ("phrases", "options"),
    [
        *(([PHRASE], options) for options in OPTIONS.values()),
        *(([PHRASE, "word7 word8"], OPTIONS[name]) for name in SEVERAL),
    ],
    ids=[*OPTIONS, *(f"{name} of two" for name in SEVERAL)],
)
def test_all_pages_are_cuts_of_one_list(
    filled_client: Client, phrases: list[str], options: dict[str, Any]
) -> None:
    def ask(size: int, offset: int) -> Result:
        return filled_client.query(phrases, index="plain", size=size, offset=offset, **options)

    first = ask(30, 0)
    pages = [first, *(ask(30, offset) for offset in range(30, first.total, 30))]
    rows = [row for page in pages for row in list_rows(page)]
    assert {page.total for page in pages} == {first.total}
    assert len({row[:2] for row in rows}) == len(rows) == first.total > 30
    assert rows == list_rows(ask(100, 0))
    assert rows[7:14] == list_rows(ask(7, 7))
    assert {str(page.facets) for page in pages} == {str(first.facets)}


@pytest.mark.parametrize("group_by", ["document", "passage"])
def test_larger_pages_go_deeper(filled_client: Client, group_by: str) -> None:
    """There are 170 documents and 510 passages, and pages of more than 100 list up to 1,000."""

    def ask(offset: int) -> Result:
        return filled_client.query(
            PHRASE, index="plain", alpha=1.0, size=150, offset=offset, group_by=group_by
        )

    pages = [ask(offset) for offset in range(0, 600, 150)]
    rows = [row for page in pages for row in list_rows(page)]
    expected = 170 if group_by == "document" else 510
    assert {page.total for page in pages} == {expected}
    assert len(set(rows)) == len(rows) == expected


@pytest.mark.parametrize(
    ("size", "offset", "way"),
    [
        (10, 100, "ask for 101 or more at once, or use mine"),
        (100, 250, "ask for 101 or more at once, or use mine"),
        (101, 1000, "ask for 1001 or more at once, or use mine"),
        (9999, 10_000, "use mine"),
    ],
)
def test_what_is_deeper_than_the_list_is_refused_and_the_way_named(
    size: int, offset: int, way: str
) -> None:
    with pytest.raises(UsageError, match=f"offset .*{offset}") as error:
        Query(PHRASE, size=size, offset=offset)
    assert way in str(error.value)


def test_an_offset_that_python_does_not_write_out_is_refused_as_any_other() -> None:
    with pytest.raises(UsageError, match="offset is of type int: with a size of 10"):
        Query(PHRASE, offset=10**5000)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("fusion", ["calibrated", "min_max", "rrf"])
def test_documents_that_take_a_window_leave_room_for_the_others(
    filled_client: Client, alpha: float, fusion: str
) -> None:
    def ask(**options: Any) -> Result:
        return filled_client.query(
            PHRASE, index="crowded", alpha=alpha, fusion=fusion, facets=["size"], **options
        )

    first, following = ask(size=10), ask(size=40, offset=10)
    assert len({hit.id for hit in first}) == 10
    ids = {hit.id for page in (first, following) for hit in page}
    assert len(ids) == CROWDS + NEIGHBOURS
    assert first.total == following.total == CROWDS + NEIGHBOURS
    assert first.facets == following.facets == {"size": {"short": NEIGHBOURS, "long": CROWDS}}


def test_passages_of_few_documents_are_hits_by_themselves(filled_client: Client) -> None:
    """The best hundred passages are those of the crowds, as they should be."""
    result = filled_client.query(PHRASE, index="crowded", size=100, group_by="passage")
    assert (len(result), result.total) == (100, 100)


@pytest.mark.parametrize("options", [{"where": {"size": "short"}}, {"feedback": 10}])
def test_a_filter_and_feedback_leave_room_too(
    filled_client: Client, options: dict[str, Any]
) -> None:
    result = filled_client.query(PHRASE, index="crowded", size=20, **options)
    assert result.total == (NEIGHBOURS if "where" in options else CROWDS + NEIGHBOURS)
    assert len(result) == 20
