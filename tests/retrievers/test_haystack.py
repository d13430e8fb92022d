"""The component for Haystack, in pipelines that are written down: ``make test-frameworks``."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hybrid_search import config
from hybrid_search.client import Client
from hybrid_search.errors import UsageError
from tests.retrievers.conftest import IndexPlace

config.disable_haystack_reports()  # as these tests import Haystack before our component does
pytest.importorskip("haystack", reason="make test-frameworks installs haystack-ai")

from haystack import Pipeline  # noqa: E402
from haystack.components.builders import PromptBuilder  # noqa: E402
from haystack.components.joiners import DocumentJoiner  # noqa: E402

from hybrid_search.retrievers.haystack import HybridSearchRetriever  # noqa: E402

pytestmark = pytest.mark.frameworks

MODULE = HybridSearchRetriever.__module__
TEMPLATE = "{% for document in documents %}{{ document.content }}\n{% endfor %}"


def make_pipeline(retriever: Any) -> Any:
    pipeline = Pipeline()
    pipeline.add_component("retriever", retriever)
    pipeline.add_component("prompt", PromptBuilder(TEMPLATE, required_variables=["documents"]))
    pipeline.connect("retriever.documents", "prompt.documents")
    return pipeline


def test_a_pipeline_that_was_written_down_answers_as_before(place: IndexPlace) -> None:
    options = {**place.options, "content": "turn", "size": 2, "where": {"sector": "shop"}}
    pipeline = make_pipeline(HybridSearchRetriever(**options))
    question = {"retriever": {"query": "money back"}}
    prompt = pipeline.run(question)["prompt"]["prompt"]
    assert len(prompt.splitlines()) >= 2
    text = pipeline.dumps()
    again = Pipeline.loads(text, allowed_modules=["haystack", MODULE])
    assert again.run(question)["prompt"]["prompt"] == prompt
    assert again.to_dict() == pipeline.to_dict()


def test_what_is_written_down_has_the_parameters_and_no_login(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HYBRID_SEARCH_API_KEY", "hunter2")
    retriever = HybridSearchRetriever("opensearch+https://search.example:9200", alpha=0.7)
    assert retriever.to_dict() == {
        "type": f"{MODULE}.HybridSearchRetriever",
        "init_parameters": {
            "url": "opensearch+https://search.example:9200",
            "content": "passage",
            "alpha": 0.7,
        },
    }
    assert HybridSearchRetriever.from_dict(retriever.to_dict()).to_dict() == retriever.to_dict()
    with pytest.raises(UsageError) as caught:
        HybridSearchRetriever("opensearch+https://bob:hunter2@search.example:9200")
    assert "hunter2" not in str(caught.value)


def test_a_component_with_a_client_of_its_own_cannot_be_written_down(sample: Client) -> None:
    with pytest.raises(UsageError, match="url= in place of client="):
        HybridSearchRetriever(client=sample).to_dict()


def test_documents_have_scores_ids_and_metadata(sample: Client) -> None:
    retriever = HybridSearchRetriever(client=sample, size=3)
    documents = retriever.run("money back", size=2, where={"sector": "bank"})["documents"]
    assert [document.meta["sector"] for document in documents] == ["bank", "bank"]
    assert [document.score for document in documents] == [
        hit.score for hit in sample.query("money back", size=2, where={"sector": "bank"})
    ]
    assert len(retriever.run("money back")["documents"]) == 3


def test_two_retrievers_are_joined_by_the_ids_of_their_documents(sample: Client) -> None:
    pipeline = Pipeline()
    pipeline.add_component("words", HybridSearchRetriever(client=sample, alpha=0.0, size=3))
    pipeline.add_component("spans", HybridSearchRetriever(client=sample, alpha=1.0, size=3))
    pipeline.add_component("join", DocumentJoiner())
    for name in ("words", "spans"):
        pipeline.connect(f"{name}.documents", "join.documents")
    question = {name: {"query": "money back"} for name in ("words", "spans")}
    ids = [document.id for document in pipeline.run(question)["join"]["documents"]]
    assert len(ids) == len(set(ids))
    assert 3 <= len(ids) <= 6


def test_an_asynchronous_pipeline_gives_the_same_documents(sample: Client) -> None:
    retriever = HybridSearchRetriever(client=sample, size=2)
    retriever.warm_up()
    expected = retriever.run("waiting on hold")
    assert asyncio.run(retriever.run_async("waiting on hold")) == expected
    pipeline = make_pipeline(HybridSearchRetriever(client=sample, size=2))
    question = {"retriever": {"query": "waiting on hold"}}
    prompt = pipeline.run(question)["prompt"]["prompt"]
    assert asyncio.run(pipeline.run_async(question))["prompt"]["prompt"] == prompt
