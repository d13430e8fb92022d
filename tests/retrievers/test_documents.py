"""What a hit becomes in every framework; where one is missing, one error names the extra."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import pytest

from hybrid_search import errors
from hybrid_search.client import Client
from hybrid_search.errors import MissingExtraError, UsageError
from hybrid_search.retrievers.searcher import CONTENTS, OWN_KEY, Searcher, build_document
from hybrid_search.search.hit import Hit, Span, TurnPlace

TEXT = "I want my money back.\nOf course, one moment."
TURNS = [TurnPlace(3, 100, 121, "customer"), TurnPlace(4, 122, 144, "agent")]
MODULES = {
    "langchain": ("langchain_core", "langchain-core"),
    "haystack": ("haystack", "haystack-ai"),
    "llamaindex": ("llama_index", "llama-index-core"),
}


def make_hit(*spans: Span, **values: Any) -> Hit:
    content = {"text": TEXT, "start": 100, "turns": TURNS, **values}
    return Hit("a", 2, 0.7, 2.1, 0.8, 1, None, {"sector": "shop"}, list(spans), **content)


def make_span(start: int, text: str, turn: int) -> Span:
    return Span(start=start, end=start + len(text), text=text, cosine=0.8, turn=turn)


def test_the_content_is_the_passage_and_its_metadata_the_callers_and_ours() -> None:
    span = make_span(107, "my money back", 3)
    document = build_document(make_hit(span), "passage")
    assert (document.id, document.document_id, document.score) == ("a#2", "a", 0.7)
    assert (document.text, document.start, document.end) == (TEXT, 100, 144)
    assert document.metadata["sector"] == "shop"
    own = document.metadata[OWN_KEY]
    assert {name: own[name] for name in ("id", "passage", "bm25", "bm25_rank", "cosine_rank")} == {
        "id": "a",
        "passage": 2,
        "bm25": 2.1,
        "bm25_rank": 1,
        "cosine_rank": None,
    }
    assert own["spans"] == [span.to_dict()]
    assert own["turns"] == [turn.to_dict() for turn in TURNS]
    assert not {"text", "metadata"} & set(own)


def test_the_turn_around_the_best_span_is_the_content() -> None:
    document = build_document(make_hit(make_span(126, "course", 4)), "turn")
    assert (document.text, document.start) == ("Of course, one moment.", 122)
    own = document.metadata[OWN_KEY]
    assert (own["start"], own["end"]) == (122, 144)


def test_the_best_span_in_another_passage_leaves_the_choice_to_the_next() -> None:
    elsewhere, here = make_span(900, "refund", 30), make_span(126, "course", 4)
    assert build_document(make_hit(elsewhere, here), "turn").text == "Of course, one moment."
    assert build_document(make_hit(elsewhere), "turn").text == TEXT
    assert build_document(make_hit(), "turn").text == TEXT


def test_of_a_turn_that_is_longer_than_the_passage_its_piece_is_the_content() -> None:
    turns = [TurnPlace(3, 40, 500, "customer")]
    document = build_document(make_hit(make_span(107, "my money back", 3), turns=turns), "turn")
    assert (document.text, document.start) == (TEXT, 100)


@pytest.mark.parametrize("content", CONTENTS)
def test_the_words_of_a_span_stand_in_the_content_at_its_offsets(
    sample: Client, content: str
) -> None:
    searcher = Searcher(content=content, client=sample, options={"size": 5})
    documents = searcher.search("waiting on hold", {"group_by": "passage"})
    assert len(documents) == 5
    assert len({document.id for document in documents}) == 5
    for document in documents:
        own = document.metadata[OWN_KEY]
        best_span = own["spans"][0]
        start = best_span["start"] - own["start"]
        assert document.text[start : start + len(best_span["text"])] == best_span["text"]
        assert document.metadata["sector"]


def test_the_callers_key_of_our_name_gives_way_and_every_other_stays() -> None:
    hit = make_hit()
    hit_with_all = Hit("a", 0, 0.5, 0, 0.5, None, 1, {"score": 9, "id2": 1, OWN_KEY: 1}, [])
    assert build_document(hit, "passage").metadata.keys() == {"sector", OWN_KEY}
    metadata = build_document(hit_with_all, "passage").metadata
    assert (metadata["score"], metadata["id2"], metadata[OWN_KEY]["score"]) == (9, 1, 0.5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"content": "call"}, "content is 'call': it must be 'passage' or 'turn'"),
        ({"options": {"alpha": 2}}, "alpha is 2: it must be a number"),
        ({"url": "https://bob:hunter2@search.example"}, "secret|password|login"),
    ],
)
def test_a_mistake_is_an_error_before_the_first_query(
    arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        Searcher(**arguments)
    assert "hunter2" not in str(caught.value)


def test_a_url_and_a_client_contradict_each_other(sample: Client) -> None:
    with pytest.raises(UsageError, match="leave one of them out"):
        Searcher("memory:", client=sample)


def test_what_is_written_down_makes_the_same_searcher_and_a_client_cannot_be(
    sample: Client,
) -> None:
    searcher = Searcher("memory:", "turn", options={"size": 2, "where": {"sector": "shop"}})
    parameters = searcher.describe()
    assert parameters == {
        "url": "memory:",
        "content": "turn",
        "size": 2,
        "where": {"sector": "shop"},
    }
    with pytest.raises(UsageError, match="url= in place of client="):
        Searcher(client=sample).describe()


@pytest.mark.parametrize("name", MODULES)
def test_a_framework_that_is_not_installed_is_one_error_that_names_the_extra(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    library, package = MODULES[name]
    for module in [module for module in sys.modules if module.split(".")[0] == library]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, library, None)
    module_name = f"hybrid_search.retrievers.{name}"
    monkeypatch.delitem(sys.modules, module_name, raising=False)
    with pytest.raises(
        MissingExtraError, match=rf"{package}: pip install '.*\[{name}\]'"
    ) as caught:
        importlib.import_module(module_name)
    assert isinstance(caught.value, errors.HybridSearchError)
