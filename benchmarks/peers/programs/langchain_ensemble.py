"""LangChain: OpenSearchVectorSearch and BM25Retriever, joined by EnsembleRetriever.

BM25Retriever computes in memory and has no filter, so that a search in one document needs an index
of this document. Its default cuts at blanks alone; the function here is what users set.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

from langchain_classic.retrievers import EnsembleRetriever
from langchain_community.retrievers import BM25Retriever
from langchain_community.vectorstores import OpenSearchVectorSearch
from langchain_core.documents import Document
from langchain_huggingface import HuggingFaceEmbeddings

from benchmarks.peers.types import Answer, Target, Texts


def list_words(text: str) -> list[str]:
    """Return the words of a text in lower case."""
    return re.findall(r"\w+", text.lower())


def build(texts: Texts, target: Target) -> Any:
    """Write the passages into OpenSearch, and make the BM25 index of all and of each document."""
    documents = [
        Document(passage.text, id=passage.id, metadata={"document": passage.document})
        for passage in texts.passages
    ]
    store = OpenSearchVectorSearch.from_documents(
        documents,
        HuggingFaceEmbeddings(model_name=str(target.weights)),
        ids=[passage.id for passage in texts.passages],
        opensearch_url=target.url,
        index_name=target.index,
        engine="lucene",
        space_type="cosinesimil",
        bulk_size=len(documents),
    )
    groups: dict[str | None, list[Document]] = defaultdict(list)
    for document in documents:
        groups[None].append(document)
        groups[document.metadata["document"]].append(document)
    return store, {
        name: BM25Retriever.from_documents(group, preprocess_func=list_words)
        for name, group in groups.items()
    }


def search(index: Any, phrase: str, k: int, document: str | None) -> list[Answer]:
    """Return the best passages."""
    store, lexical_retrievers = index
    options: dict[str, Any] = {"k": k}
    if document is not None:
        options["efficient_filter"] = {"term": {"metadata.document.keyword": document}}
    lexical = lexical_retrievers[document]
    lexical.k = k
    vectors = store.as_retriever(search_kwargs=options)
    ensemble = EnsembleRetriever(retrievers=[lexical, vectors], weights=[0.5, 0.5])
    return [Answer(str(hit.id)) for hit in ensemble.invoke(phrase)[:k]]
