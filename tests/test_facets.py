"""Hits in the order of a field, and documents counted by value: over the window and over all matches, on every backend."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import pytest

from hybrid_search import connect
from hybrid_search.backends.base import FACETS
from hybrid_search.client import Client
from hybrid_search.errors import UsageError
from hybrid_search.results import Result

TALK = "we talked about the weather and the price of bread in town for a while " * 8

TOLD: list[dict[str, Any]] = [
    {"id": "a", "text": "I want a refund.", "minutes": 12, "city": "Ulm", "solved": True, "tags": ["money", "late"], "who": {"tier": "gold"}},
    {"id": "b", "text": "A refund, a refund, please refund it.", "minutes": 3, "city": "Aalen", "solved": False, "tags": ["money"]},
    {"id": "c", "text": "No refund was ever promised to me.", "minutes": 7.5, "city": "ulm", "tags": ["late", "rude", "late"]},
    {"id": "d", "text": "Refund the second order.", "minutes": 12, "city": "Äpfingen", "solved": True, "who": {"tier": "silver", "since": "2024-02"}},
    {"id": "e", "text": "They refused the refund.", "minutes": -4, "city": "Zug", "tags": [], "who": {"tier": None}},
    {"id": "f", "text": "Where is my money?", "minutes": 12, "city": "東京", "solved": False, "tags": ["money", "money"], "who": {"tier": "gold"}},
    {"id": "g", "text": "My card was stolen.", "city": "Ulm", "solved": True, "orders": [{"n": 4}, {"n": 9}]},
    {
        "id": "h",
        "turns": [{"speaker": "customer", "text": f"The refund for order {number}. {TALK}"} for number in range(3)],
        "minutes": 45,
        "city": "Ulm",
        "tags": ["long"],
        "orders": [{"n": 1}],
    },
]
MANY = 140
"""More matching documents than a window holds; each has a value of its own, which are more than are counted."""
FEW = {"set": "told"}


@pytest.fixture(scope="module")
def filled(module_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """`TOLD` and many more documents on each backend. Only to be read."""
    told = [{**each, "set": "told"} for each in TOLD]
    many = [{"id": f"many-{number:03}", "text": "A refund.", "set": "many", "even": number % 2 == 0, "n": number} for number in range(MANY)]
    with connect(module_url) as client:
        summary = client.ingest([*told, *many], rejects=tmp_path_factory.mktemp("filled") / "rejected.jsonl")
        assert summary.failed == 0
        assert client.describe().passages == len(told) + 2 + MANY
        yield client


def ordered(client: Client, sort: str, **asked: Any) -> list[str]:
    return [hit.id for hit in client.query("refund", where=FEW, sort=sort, **asked)]


def counts(client: Client, *fields: str, phrase: str | list[str] = "refund", **asked: Any) -> Mapping[str, Any]:
    found = client.query(phrase, facets=fields, **asked).facets
    assert found is not None
    return found


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
def test_hits_stand_in_the_order_of_a_field_and_equal_ones_by_score(filled: Client, sort: str, expected: str) -> None:
    """`expected`: documents of equal values together."""
    by_score = [hit.id for hit in filled.query("refund", where=FEW)]
    assert ordered(filled, sort) == [each for equal in expected.split() for each in by_score if each in equal]


def test_another_order_changes_no_hit(filled: Client) -> None:
    plain, sorted_ = (filled.query("refund", where=FEW, sort=sort, explain=True, highlight=True) for sort in (None, "-city"))
    assert {hit.id: hit for hit in plain} == {hit.id: hit for hit in sorted_}
    assert plain.hits != sorted_.hits
    assert plain.total == sorted_.total == len(TOLD)
    assert (plain.plan.get("sort"), sorted_.plan["sort"]) == (None, "-city")


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_order_holds_at_both_ends_of_alpha(filled: Client, alpha: float) -> None:
    found = ordered(filled, "minutes", alpha=alpha)
    assert found == [each for each in ordered(filled, "minutes") if each in found]
    assert set(found) == set("abcdeh" if alpha == 0 else "abcdefgh")


def test_the_best_are_put_in_order_and_not_the_least(filled: Client) -> None:
    """What is left out by `min_score` is not put in order, and `size` cuts behind the sorting."""
    least = filled.query("refund", where=FEW).hits[3].score
    best = {hit.id for hit in filled.query("refund", where=FEW, size=4)}
    assert ordered(filled, "id", min_score=least) == sorted(best)
    assert ordered(filled, "id", size=2) == ["a", "b"]


def test_passages_of_a_document_stay_in_the_order_of_their_scores(filled: Client) -> None:
    hits = filled.query("refund", where=FEW, sort="-minutes", group_by="passage").hits
    assert [hit.id for hit in hits[:3]] == ["h"] * 3
    assert [hit.score for hit in hits[:3]] == sorted((hit.score for hit in hits[:3]), reverse=True)
    assert len(hits) == len(TOLD) + 2


@pytest.mark.parametrize("group_by", ["document", "passage"])
@pytest.mark.parametrize("sort", [None, "minutes", "-even", "-n", "id"])
def test_pages_make_one_long_page_in_any_order(filled: Client, sort: str | None, group_by: str) -> None:
    def page(offset: int, size: int) -> Result:
        return filled.query("refund please", sort=sort, group_by=group_by, offset=offset, size=size, spans=1)

    whole = page(0, 100)
    pages = [page(offset, 30) for offset in (0, 30, 60, 90)]
    assert [hit for each in pages[:3] for hit in each] == whole.hits[:90]
    assert page(90, 10).hits == whole.hits[90:]
    places = [(hit.id, hit.passage) for hit in whole]
    assert len(set(places)) == len(places) == 100


def test_numbers_are_in_order_over_the_whole_window(filled: Client) -> None:
    found = [hit.metadata["n"] for hit in filled.query("refund", where={"set": "many"}, sort="-n", size=100)]
    assert len(found) == 100
    assert all(first > second for first, second in pairwise(found))


# Counting


def test_documents_are_counted_by_value_and_not_passages(filled: Client) -> None:
    assert counts(filled, "city", where=FEW) == {"city": {"Ulm": 3, "Aalen": 1, "Zug": 1, "ulm": 1, "Äpfingen": 1, "東京": 1}}
    passages = counts(filled, "city", where=FEW, group_by="passage")
    assert passages["city"]["Ulm"] == 3  # although one of them has three passages


def test_a_value_that_a_list_has_twice_counts_once(filled: Client) -> None:
    assert counts(filled, "tags", where=FEW)["tags"] == {"money": 3, "late": 2, "long": 1, "rude": 1}
    assert counts(filled, "tags", where=FEW, facets_over="matches")["tags"] == {"late": 2, "money": 2, "long": 1, "rude": 1}


@pytest.mark.parametrize("over", ["window", "matches"])
def test_the_most_frequent_values_come_first_and_equal_ones_in_order(filled: Client, over: str) -> None:
    found = counts(filled, "city", "tags", "minutes", where=FEW, facets_over=over)
    for field, held in found.items():
        assert list(held.items()) == sorted(held.items(), key=lambda item: (-item[1], item[0])), field
    assert list(found) == ["city", "tags", "minutes"]


@pytest.mark.parametrize("over", ["window", "matches"])
def test_values_keep_their_types(filled: Client, over: str) -> None:
    found = counts(filled, "solved", "minutes", "who.tier", "orders.n", "who.since", where=FEW, facets_over=over)
    everything = over == "window"  # f and g match by their meaning alone
    assert found["solved"] == ({True: 3, False: 2} if everything else {True: 2, False: 1})
    assert {type(value) for value in found["solved"]} == {bool}
    assert found["minutes"] == {12: 3 if everything else 2, -4: 1, 3: 1, 7.5: 1, 45: 1}
    assert found["who.tier"] == ({"gold": 2, "silver": 1} if everything else {"gold": 1, "silver": 1})
    assert found["orders.n"] == ({1: 1, 4: 1, 9: 1} if everything else {1: 1})
    assert found["who.since"] == {"2024-02": 1}


def test_over_the_window_those_are_counted_that_were_fused(filled: Client) -> None:
    result = filled.query("refund", alpha=0.0, facets="set", size=1)
    assert result.facets is not None
    assert sum(result.facets["set"].values()) == result.total
    assert result.total <= 100  # of BM25 alone the window has so many passages


def test_over_all_matches_also_those_beyond_the_window_are_counted(filled: Client) -> None:
    for alpha in (0.0, 0.5, 1.0):
        assert counts(filled, "set", "even", alpha=alpha, facets_over="matches") == {
            "set": {"many": MANY, "told": 6},
            "even": {False: MANY // 2, True: MANY // 2},
        }


@pytest.mark.parametrize("over", ["window", "matches"])
def test_only_what_fulfils_the_conditions_is_counted(filled: Client, over: str) -> None:
    assert counts(filled, "solved", where={**FEW, "minutes": {"gte": 12}, "city": ["Ulm", "Äpfingen"]}, facets_over=over)["solved"] == {True: 2}
    assert counts(filled, "n", where={"n": {"lt": 3}}, facets_over=over)["n"] == {0: 1, 1: 1, 2: 1}
    assert counts(filled, "solved", where={"id": ["a", "b", "nobody"]}, facets_over=over)["solved"] == {False: 1, True: 1}
    assert counts(filled, "solved", where={"city": "Atlantis"}, facets_over=over)["solved"] == {}


def test_what_is_under_the_least_score_is_not_counted_in_the_window(filled: Client) -> None:
    best = filled.query("refund", where=FEW, size=3).hits
    assert sum(counts(filled, "set", where=FEW, min_score=best[-1].score)["set"].values()) == 3


def test_offset_and_size_change_no_count(filled: Client) -> None:
    first, second = (counts(filled, "tags", "city", where=FEW, size=size, offset=offset) for size, offset in ((10, 0), (2, 5)))
    assert first == second


def test_any_word_of_the_phrase_is_a_match(filled: Client) -> None:
    assert counts(filled, "set", phrase="stolen money", facets_over="matches")["set"] == {"told": 2}
    assert counts(filled, "set", phrase="nobody says xylophones", facets_over="matches")["set"] == {}
    assert counts(filled, "set", phrase="refund?!", facets_over="matches")["set"] == {"many": MANY, "told": 6}


@pytest.mark.parametrize("over", ["window", "matches"])
def test_of_more_values_than_are_counted_the_first_are(filled: Client, over: str) -> None:
    found = counts(filled, "n", where={"set": "many"}, size=MANY, facets_over=over)["n"]
    assert FACETS < MANY
    assert list(found.items()) == [(number, 1) for number in range(FACETS)]


def test_several_phrases_are_counted_over_the_window(filled: Client) -> None:
    of_one, of_two = (counts(filled, "solved", where=FEW, phrase=phrase) for phrase in ("refund", ["refund", "stolen card"]))
    assert of_one == of_two == {"solved": {True: 3, False: 2}}
    with pytest.raises(
        UsageError, match=r"facets over matches are counted for one phrase, and there are 2: ask for one, or for facets over the window"
    ):
        filled.query(["refund", "stolen card"], facets="solved", facets_over="matches")


def test_counts_and_order_go_together(filled: Client) -> None:
    result = filled.query("refund", where=FEW, sort="id", facets=["solved"], size=1)
    assert [hit.id for hit in result] == ["a"]
    assert result.facets == {"solved": {True: 3, False: 2}}


def test_the_json_form_has_pairs_of_value_and_count(filled: Client) -> None:
    for over in ("window", "matches"):
        result = filled.query("refund", where={"id": ["a", "b", "c"]}, facets=["solved", "minutes", "tags"], facets_over=over)
        held = json.loads(json.dumps(result.to_dict()))["facets"]
        assert held == {"solved": [[False, 1], [True, 1]], "minutes": [[3, 1], [7.5, 1], [12, 1]], "tags": [["late", 2], ["money", 2], ["rude", 1]]}
        assert [type(value) for value, _ in held["solved"]] == [bool, bool]


def test_nothing_is_counted_unasked(filled: Client) -> None:
    result = filled.query("refund")
    assert result.facets is None
    assert "facets" not in result.to_dict()


# What is refused

FIELDS = "city, even, minutes, n, orders.n, set, solved, tags, who.since, who.tier"


@pytest.mark.parametrize("asked", [{"sort": "town"}, {"sort": "-town"}, {"facets": "town"}, {"facets": ["city", "town"], "facets_over": "matches"}])
def test_an_unknown_field_is_refused_with_those_there_are(filled: Client, asked: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as refused:
        filled.query("refund", **asked)
    assert str(refused.value).startswith("cannot sort or count by 'town': the index has no such field. Its fields: ")
    assert all(each in str(refused.value) for each in FIELDS.split(", "))


@pytest.mark.parametrize("name", ["who", "orders", "", "-", "*", "text", "metadata.city", "CITY", "city ", "who.tier.x", "_id"])
def test_what_is_no_field_of_plain_values_is_refused(filled: Client, name: str) -> None:
    asks: list[dict[str, Any]] = [{"sort": f"-{name}"}, {"facets": [name]}, {"facets": [name], "facets_over": "matches"}]
    for asked in asks:
        with pytest.raises(UsageError, match="cannot sort or count by"):
            filled.query("refund", **asked)


def test_ids_are_put_in_order_and_never_counted(filled: Client) -> None:
    asks: list[dict[str, Any]] = [{"facets": "id"}, {"facets": "id", "sort": "id"}, {"facets": "-city"}, {"facets": "id", "facets_over": "matches"}]
    for asked in asks:
        with pytest.raises(UsageError, match="cannot sort or count by"):
            filled.query("refund", **asked)


def test_another_set_to_count_over_is_refused(filled: Client) -> None:
    with pytest.raises(UsageError, match=r"facets_over 'everything' \(of \('window', 'matches'\)\)"):
        filled.query("refund", facets="city", facets_over="everything")


def test_an_empty_set_has_no_order_and_no_counts(filled: Client) -> None:
    result = filled.query("refund", where={"id": "nobody"}, sort="city", facets=["city", "tags"])
    assert (result.hits, result.facets) == ([], {"city": {}, "tags": {}})
