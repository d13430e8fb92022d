"""Hits sorted and grouped by a field, and values counted over the window and all matches."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import pytest

from hybrid_search import connect
from hybrid_search.backends.types import FACETS
from hybrid_search.client import Client
from hybrid_search.errors import UsageError
from hybrid_search.search.result import Result

TALK = "we talked about the weather and the price of bread in town for a while " * 8

DOCUMENTS: list[dict[str, Any]] = [
    {"id": "a", "text": "I want a refund.", "minutes": 12, "city": "Ulm", "solved": True,
     "tags": ["money", "late"], "who": {"tier": "gold"}},
    {"id": "b", "text": "A refund, a refund, please refund it.", "minutes": 3, "city": "Aalen",
     "solved": False, "tags": ["money"]},
    {"id": "c", "text": "No refund was ever promised to me.", "minutes": 7.5, "city": "ulm",
     "tags": ["late", "rude", "late"]},
    {"id": "d", "text": "Refund the second order.", "minutes": 12, "city": "Äpfingen",
     "solved": True, "who": {"tier": "silver", "since": "2024-02"}},
    {"id": "e", "text": "They refused the refund.", "minutes": -4, "city": "Zug", "tags": [],
     "who": {"tier": None}},
    {"id": "f", "text": "Where is my money?", "minutes": 12, "city": "東京", "solved": False,
     "tags": ["money", "money"], "who": {"tier": "gold"}},
    {"id": "g", "text": "My card was stolen.", "city": "Ulm", "solved": True,
     "orders": [{"n": 4}, {"n": 9}]},
    {"id": "h", "minutes": 45, "city": "Ulm", "tags": ["long"], "orders": [{"n": 1}],
     "turns": [{"speaker": "customer", "text": f"The refund for order {number}. {TALK}"}
               for number in range(3)]},
]  # fmt: skip
EXTRA_COUNT = 140
"""More matching documents than a window holds; each has a value of its own, which are more than are
counted.
"""
SMALL_SET = {"set": "told"}


@pytest.fixture(scope="module")
def filled_client(module_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """`TOLD` and many more documents on each backend. Only to be read."""
    documents = [{**document, "set": "told"} for document in DOCUMENTS]
    extra_documents = [
        {
            "id": f"many-{number:03}",
            "text": "A refund.",
            "set": "many",
            "even": number % 2 == 0,
            "n": number,
        }
        for number in range(EXTRA_COUNT)
    ]
    with connect(module_url) as client:
        summary = client.ingest(
            [*documents, *extra_documents],
            rejects=tmp_path_factory.mktemp("filled") / "rejected.jsonl",
        )
        assert summary.failed == 0
        assert client.describe().passages == len(documents) + 2 + EXTRA_COUNT
        yield client


def query_ids(client: Client, sort: str, **options: Any) -> list[str]:
    return [hit.id for hit in client.query("refund", where=SMALL_SET, sort=sort, **options)]


def facet_counts(
    client: Client, *fields: str, phrase: str | list[str] = "refund", **options: Any
) -> Mapping[str, Any]:
    facets = client.query(phrase, facets=fields, **options).facets
    assert facets is not None
    return facets


# Another order


@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        ("minutes", "e b c adf h g"),
        ("-minutes", "h adf c b e g"),
        ("city", "b agh e c d f"),
        ("-city", "f d c e agh b"),  # as code points stand: Aalen, Ulm, Zug, ulm, Äpfingen, 東京
        ("solved", "bf adg ceh"),
        ("-solved", "adg bf ceh"),
        ("id", "a b c d e f g h"),
        ("-id", "h g f e d c b a"),
        ("tags", "ac h bf deg"),  # of several values the least: late, long, money
        ("-tags", "c abf h deg"),  # and the greatest: rude, money, long
        ("who.tier", "af d bcegh"),
        ("who.since", "d abcefgh"),
        ("orders.n", "h g abcdef"),
        ("-orders.n", "g h abcdef"),
        ("set", "abcdefgh"),
    ],
)
def test_hits_stand_in_the_order_of_a_field_and_equal_ones_by_score(
    filled_client: Client, sort: str, expected: str
) -> None:
    """`expected`: documents of equal values together."""
    by_score = [hit.id for hit in filled_client.query("refund", where=SMALL_SET)]
    assert query_ids(filled_client, sort) == [
        id_ for tied_ids in expected.split() for id_ in by_score if id_ in tied_ids
    ]


def test_another_order_changes_no_hit(filled_client: Client) -> None:
    plain, sorted_ = (
        filled_client.query("refund", where=SMALL_SET, sort=sort, explain=True, highlight=True)
        for sort in (None, "-city")
    )
    assert {hit.id: hit for hit in plain} == {hit.id: hit for hit in sorted_}
    assert plain.hits != sorted_.hits
    assert plain.total == sorted_.total == len(DOCUMENTS)
    assert (plain.plan.get("sort"), sorted_.plan["sort"]) == (None, "-city")


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_order_holds_at_both_ends_of_alpha(filled_client: Client, alpha: float) -> None:
    ids = query_ids(filled_client, "minutes", alpha=alpha)
    assert ids == [id_ for id_ in query_ids(filled_client, "minutes") if id_ in ids]
    assert set(ids) == set("abcdeh" if alpha == 0 else "abcdefgh")


def test_the_best_are_put_in_order_and_not_the_least(filled_client: Client) -> None:
    """Hits under `min_score` are left out before sorting, and `size` cuts after it."""
    least = filled_client.query("refund", where=SMALL_SET).hits[3].score
    best = {hit.id for hit in filled_client.query("refund", where=SMALL_SET, size=4)}
    assert query_ids(filled_client, "id", min_score=least) == sorted(best)
    assert query_ids(filled_client, "id", size=2) == ["a", "b"]


def test_passages_of_a_document_stay_in_the_order_of_their_scores(filled_client: Client) -> None:
    hits = filled_client.query("refund", where=SMALL_SET, sort="-minutes", group_by="passage").hits
    assert [hit.id for hit in hits[:3]] == ["h"] * 3
    assert [hit.score for hit in hits[:3]] == sorted((hit.score for hit in hits[:3]), reverse=True)
    assert len(hits) == len(DOCUMENTS) + 2


def test_numbers_are_in_order_over_the_whole_window(filled_client: Client) -> None:
    numbers = [
        hit.metadata["n"]
        for hit in filled_client.query("refund", where={"set": "many"}, sort="-n", size=100)
    ]
    assert len(numbers) == 100
    assert all(first > second for first, second in pairwise(numbers))


# Grouping


@pytest.mark.parametrize(
    ("field", "groups"),
    [
        ("city", "agh b c d e f"),
        ("solved", "adg bf c e h"),  # without the field a document stands for itself
        ("tags", "a bf c d e g h"),  # a list is one value, in whatever order
        ("minutes", "adf b c e g h"),
    ],
)
def test_grouped_by_a_field_the_best_document_of_each_value_is_a_hit(
    filled_client: Client, field: str, groups: str
) -> None:
    plain = filled_client.query("refund", where=SMALL_SET, facets=["city"])
    best = {next(id_ for id_ in list_ids(plain) if id_ in group) for group in groups.split()}
    grouped = filled_client.query("refund", where=SMALL_SET, facets=["city"], group_by=field)
    assert grouped.hits == [hit for hit in plain if hit.id in best]
    assert grouped.total == len(best)
    assert grouped.facets == plain.facets
    pages = [
        filled_client.query("refund", where=SMALL_SET, group_by=field, size=2, offset=offset)
        for offset in (0, 2, 4, 6)
    ]
    assert [hit for page in pages for hit in page] == grouped.hits
    sorted_ = filled_client.query("refund", where=SMALL_SET, group_by=field, sort="id")
    assert list_ids(sorted_) == sorted(best)


def list_ids(result: Result) -> list[str]:
    return [hit.id for hit in result]


# Counting


def test_documents_are_counted_by_value_and_not_passages(filled_client: Client) -> None:
    assert facet_counts(filled_client, "city", where=SMALL_SET) == {
        "city": {"Ulm": 3, "Aalen": 1, "Zug": 1, "ulm": 1, "Äpfingen": 1, "東京": 1}
    }
    passages = facet_counts(filled_client, "city", where=SMALL_SET, group_by="passage")
    assert passages["city"]["Ulm"] == 3  # although one of them has three passages


def test_a_value_that_a_list_has_twice_counts_once(filled_client: Client) -> None:
    assert facet_counts(filled_client, "tags", where=SMALL_SET)["tags"] == {
        "money": 3,
        "late": 2,
        "long": 1,
        "rude": 1,
    }
    assert facet_counts(filled_client, "tags", where=SMALL_SET, facets_over="matches")["tags"] == {
        "late": 2,
        "money": 2,
        "long": 1,
        "rude": 1,
    }


@pytest.mark.parametrize("facets_over", ["window", "matches"])
def test_the_most_frequent_values_come_first_and_equal_ones_in_order(
    filled_client: Client, facets_over: str
) -> None:
    facets = facet_counts(
        filled_client, "city", "tags", "minutes", where=SMALL_SET, facets_over=facets_over
    )
    for field, value_counts in facets.items():
        assert list(value_counts.items()) == sorted(
            value_counts.items(), key=lambda item: (-item[1], item[0])
        ), field
    assert list(facets) == ["city", "tags", "minutes"]


@pytest.mark.parametrize("facets_over", ["window", "matches"])
def test_values_keep_their_types(filled_client: Client, facets_over: str) -> None:
    facets = facet_counts(
        filled_client,
        "solved",
        "minutes",
        "who.tier",
        "orders.n",
        "who.since",
        where=SMALL_SET,
        facets_over=facets_over,
    )
    is_window = facets_over == "window"  # f and g match by their meaning alone
    assert facets["solved"] == ({True: 3, False: 2} if is_window else {True: 2, False: 1})
    assert {type(value) for value in facets["solved"]} == {bool}
    assert facets["minutes"] == {12: 3 if is_window else 2, -4: 1, 3: 1, 7.5: 1, 45: 1}
    assert facets["who.tier"] == (
        {"gold": 2, "silver": 1} if is_window else {"gold": 1, "silver": 1}
    )
    assert facets["orders.n"] == ({1: 1, 4: 1, 9: 1} if is_window else {1: 1})
    assert facets["who.since"] == {"2024-02": 1}


def test_over_the_window_those_are_counted_that_were_fused(filled_client: Client) -> None:
    result = filled_client.query("refund", alpha=0.0, facets="set", size=1)
    assert result.facets is not None
    assert sum(result.facets["set"].values()) == result.total
    assert result.total <= 100  # of BM25 alone the window has so many passages


def test_over_all_matches_also_those_beyond_the_window_are_counted(filled_client: Client) -> None:
    for alpha in (0.0, 0.5, 1.0):
        assert facet_counts(filled_client, "set", "even", alpha=alpha, facets_over="matches") == {
            "set": {"many": EXTRA_COUNT, "told": 6},
            "even": {False: EXTRA_COUNT // 2, True: EXTRA_COUNT // 2},
        }


@pytest.mark.parametrize("facets_over", ["window", "matches"])
def test_only_what_fulfils_the_conditions_is_counted(
    filled_client: Client, facets_over: str
) -> None:
    assert facet_counts(
        filled_client,
        "solved",
        where={**SMALL_SET, "minutes": {"gte": 12}, "city": ["Ulm", "Äpfingen"]},
        facets_over=facets_over,
    )["solved"] == {True: 2}
    assert facet_counts(filled_client, "n", where={"n": {"lt": 3}}, facets_over=facets_over)[
        "n"
    ] == {0: 1, 1: 1, 2: 1}
    assert facet_counts(
        filled_client, "solved", where={"id": ["a", "b", "nobody"]}, facets_over=facets_over
    )["solved"] == {False: 1, True: 1}
    assert (
        facet_counts(filled_client, "solved", where={"city": "Atlantis"}, facets_over=facets_over)[
            "solved"
        ]
        == {}
    )


def test_what_is_under_the_least_score_is_not_counted_in_the_window(filled_client: Client) -> None:
    best = filled_client.query("refund", where=SMALL_SET, size=3).hits
    assert (
        sum(
            facet_counts(filled_client, "set", where=SMALL_SET, min_score=best[-1].score)[
                "set"
            ].values()
        )
        == 3
    )


def test_any_word_of_the_phrase_is_a_match(filled_client: Client) -> None:
    assert facet_counts(filled_client, "set", phrase="stolen money", facets_over="matches")[
        "set"
    ] == {"told": 2}
    assert (
        facet_counts(filled_client, "set", phrase="nobody says xylophones", facets_over="matches")[
            "set"
        ]
        == {}
    )
    assert facet_counts(filled_client, "set", phrase="refund?!", facets_over="matches")["set"] == {
        "many": EXTRA_COUNT,
        "told": 6,
    }


@pytest.mark.parametrize("facets_over", ["window", "matches"])
def test_of_more_values_than_are_counted_the_first_are(
    filled_client: Client, facets_over: str
) -> None:
    value_counts = facet_counts(
        filled_client, "n", where={"set": "many"}, size=EXTRA_COUNT, facets_over=facets_over
    )["n"]
    assert FACETS < EXTRA_COUNT
    assert list(value_counts.items()) == [(number, 1) for number in range(FACETS)]


def test_several_phrases_are_counted_over_the_window(filled_client: Client) -> None:
    of_one, of_two = (
        facet_counts(filled_client, "solved", where=SMALL_SET, phrase=phrase)
        for phrase in ("refund", ["refund", "stolen card"])
    )
    assert of_one == of_two == {"solved": {True: 3, False: 2}}
    with pytest.raises(
        UsageError,
        match="facets over matches work for one phrase, but there are 2: give one, or "
        "use facets over the window",
    ):
        filled_client.query(["refund", "stolen card"], facets="solved", facets_over="matches")


def test_the_json_form_has_pairs_of_value_and_count(filled_client: Client) -> None:
    for facets_over in ("window", "matches"):
        result = filled_client.query(
            "refund",
            where={"id": ["a", "b", "c"]},
            facets=["solved", "minutes", "tags"],
            facets_over=facets_over,
        )
        json_facets = json.loads(json.dumps(result.to_dict()))["facets"]
        assert json_facets == {
            "solved": [[False, 1], [True, 1]],
            "minutes": [[3, 1], [7.5, 1], [12, 1]],
            "tags": [["late", 2], ["money", 2], ["rude", 1]],
        }
        assert [type(value) for value, _ in json_facets["solved"]] == [bool, bool]


def test_nothing_is_counted_unasked(filled_client: Client) -> None:
    result = filled_client.query("refund")
    assert result.facets is None
    assert "facets" not in result.to_dict()


# What is refused

FIELDS = "city, even, minutes, n, orders.n, set, solved, tags, who.since, who.tier"


@pytest.mark.parametrize(
    "options",
    [
        {"sort": "town"},
        {"sort": "-town"},
        {"facets": "town"},
        {"facets": ["city", "town"], "facets_over": "matches"},
    ],
)
def test_an_unknown_field_is_refused_with_those_there_are(
    filled_client: Client, options: dict[str, Any]
) -> None:
    with pytest.raises(UsageError) as error:
        filled_client.query("refund", **options)
    assert str(error.value).startswith(
        "cannot sort, group or count by 'town': the index has no such field. Its fields: "
    )
    assert all(field in str(error.value) for field in FIELDS.split(", "))


@pytest.mark.parametrize(
    "name",
    ["who", "orders", "", "-", "*", "text", "metadata.city", "CITY", "city ", "who.tier.x", "_id"],
)
def test_what_is_no_field_of_plain_values_is_refused(filled_client: Client, name: str) -> None:
    requests: list[dict[str, Any]] = [
        {"sort": f"-{name}"},
        {"facets": [name]},
        {"facets": [name], "facets_over": "matches"},
    ]
    for options in requests:
        with pytest.raises(UsageError, match="cannot sort, group or count by"):
            filled_client.query("refund", **options)


def test_ids_are_put_in_order_and_never_counted(filled_client: Client) -> None:
    requests: list[dict[str, Any]] = [
        {"facets": "id"},
        {"facets": "id", "sort": "id"},
        {"facets": "-city"},
        {"facets": "id", "facets_over": "matches"},
    ]
    for options in requests:
        with pytest.raises(UsageError, match="cannot sort, group or count by"):
            filled_client.query("refund", **options)


def test_an_empty_set_has_no_order_and_no_counts(filled_client: Client) -> None:
    result = filled_client.query(
        "refund", where={"id": "nobody"}, sort="city", facets=["city", "tags"]
    )
    assert (result.hits, result.facets) == ([], {"city": {}, "tags": {}})
