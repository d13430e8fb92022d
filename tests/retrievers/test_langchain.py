"""The retriever for LangChain, in LangChain's own tests and in ours: ``make test-frameworks``."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hybrid_search.client import Client
from tests.retrievers.conftest import IndexPlace

pytest.importorskip("langchain_tests", reason="make test-frameworks installs langchain-tests")

from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import PromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_tests.integration_tests.retrievers import RetrieversIntegrationTests

from hybrid_search.retrievers.langchain import HybridSearchRetriever

pytestmark = pytest.mark.frameworks


class TestLangChainsOwn(RetrieversIntegrationTests):  # type: ignore[misc]
    """The suite of langchain-tests as it is, on the embedded index and on servers."""

    _options: dict[str, Any]

    @pytest.fixture(autouse=True)
    def _take_place(self, place: IndexPlace) -> None:
        self._options = place.options

    @property
    def retriever_constructor(self) -> type[HybridSearchRetriever]:
        return HybridSearchRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return self._options

    @property
    def retriever_query_example(self) -> str:
        return "refund request"

    @property
    def num_results_arg_name(self) -> str:
        return "size"


def test_a_document_has_the_turn_the_spans_and_the_callers_keys(place: IndexPlace) -> None:
    retriever = HybridSearchRetriever(
        **place.options, content="turn", size=2, where={"sector": "shop"}
    )
    documents = retriever.invoke("money back")
    assert [document.metadata["sector"] for document in documents] == ["shop", "shop"]
    own = documents[0].metadata["hybrid_search"]
    assert documents[0].id == f"{own['id']}#{own['passage']}"
    assert own["spans"][0]["text"] in documents[0].page_content
    assert 0 < own["score"] < 1


def test_what_invoke_says_goes_before_what_the_retriever_was_made_with(sample: Client) -> None:
    retriever = HybridSearchRetriever(client=sample, size=5, alpha=1.0)
    documents = retriever.invoke("money back", size=1, where={"sector": "bank"})
    assert [document.metadata["sector"] for document in documents] == ["bank"]
    hits = sample.query("money back", size=5, alpha=1.0).hits
    assert [document.id for document in retriever.invoke("money back")] == [
        f"{hit.id}#{hit.passage}" for hit in hits
    ]


def test_many_questions_at_once_on_one_event_loop(sample: Client) -> None:
    retriever = HybridSearchRetriever(client=sample, size=1)
    phrases = ["refund", "waiting on hold", "broken kettle"]
    expected = [retriever.invoke(phrase) for phrase in phrases]
    assert asyncio.run(retriever.abatch(phrases)) == expected
    assert asyncio.run(retriever.abatch(phrases)) == expected  # on another loop


def test_it_is_a_link_of_a_chain(sample: Client) -> None:
    def join(documents: list[Any]) -> str:
        return "\n".join(document.page_content for document in documents)

    prompt = PromptTemplate.from_template("{question}: {context}")
    retriever = HybridSearchRetriever(client=sample, size=1, content="turn")
    inputs = {"context": retriever | RunnableLambda(join), "question": RunnablePassthrough()}
    chain = inputs | prompt | RunnableLambda(lambda value: value.to_string()) | StrOutputParser()
    (expected,) = retriever.invoke("money back")
    assert chain.invoke("money back") == f"money back: {expected.page_content}"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"alpha": 2}, ValueError, "alpha is 2"),
        ({"alfa": 1}, TypeError, "did you mean 'alpha'"),
        ({"url": "https://bob:hunter2@search.example"}, ValueError, "search.example|secret"),
    ],
)
def test_a_mistake_is_told_when_it_is_made_and_without_a_secret(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message) as caught:
        HybridSearchRetriever(**options)
    assert "hunter2" not in str(caught.value)
