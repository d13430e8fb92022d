"""The retriever for LlamaIndex: ``make test-frameworks``."""

from __future__ import annotations

import asyncio

import pytest

from hybrid_search.client import Client
from tests.retrievers.conftest import IndexPlace

pytest.importorskip("llama_index.core", reason="make test-frameworks installs llama-index-core")

from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import QueryBundle

from hybrid_search.retrievers.llamaindex import HybridSearchRetriever

pytestmark = pytest.mark.frameworks


def test_a_node_is_the_turn_with_its_offsets_spans_and_source(place: IndexPlace) -> None:
    retriever = HybridSearchRetriever(
        **place.options, content="turn", size=2, where={"sector": "shop"}
    )
    nodes = retriever.retrieve(QueryBundle("money back"))
    assert len(nodes) == 2
    node, own = nodes[0].node, nodes[0].node.metadata["hybrid_search"]
    assert node.ref_doc_id == own["id"]
    assert node.node_id == f"{own['id']}#{own['passage']}"
    assert (node.start_char_idx, node.end_char_idx) == (own["start"], own["end"])
    assert own["spans"][0]["text"] in node.text
    assert nodes[0].score == own["score"]


def test_a_language_model_reads_the_callers_keys_and_not_our_numbers(sample: Client) -> None:
    (node,) = HybridSearchRetriever(client=sample, size=1).retrieve("money back")
    shown = node.get_content("llm")
    assert "sector: shop" in shown
    assert "hybrid_search" not in shown


def test_it_answers_on_an_event_loop_and_many_at_once(sample: Client) -> None:
    retriever = HybridSearchRetriever(client=sample, size=2)
    phrases = ["refund", "waiting on hold", "broken kettle"]

    async def ask() -> list[list[str]]:
        answers = await asyncio.gather(*(retriever.aretrieve(phrase) for phrase in phrases))
        return [[node.node_id for node in nodes] for nodes in answers]

    expected = [[node.node_id for node in retriever.retrieve(phrase)] for phrase in phrases]
    assert asyncio.run(ask()) == expected


def test_two_passages_of_one_document_are_two_nodes(sample: Client) -> None:
    retriever = HybridSearchRetriever(client=sample, size=10, group_by="passage")
    ids = [node.node_id for node in retriever.retrieve("money back")]
    assert len(set(ids)) == 10


def test_a_query_engine_reads_its_nodes(sample: Client) -> None:
    retriever = HybridSearchRetriever(client=sample, size=1, content="turn")
    engine = RetrieverQueryEngine.from_args(retriever, llm=MockLLM())
    answer = engine.query("money back")
    (node,) = retriever.retrieve("money back")
    assert [source.node_id for source in answer.source_nodes] == [node.node_id]
    assert node.text in str(answer)
