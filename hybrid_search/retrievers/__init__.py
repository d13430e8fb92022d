"""Retrievers for LangChain, Haystack and LlamaIndex, over the indexes of this project.

In: a query as the framework passes it. Out: documents of the framework, whose content is a hit's
passage, or the turn around its best span, and whose metadata has the spans and the scores.

Modules in reading order: `searcher` (asks one client, also from an event loop, and what a hit
becomes for all frameworks), then `langchain`, `haystack` and `llamaindex`. Each of these needs
the extra of its name, and nothing here is imported with the package.

A new framework is a module here with a retriever over `Searcher`, an extra in pyproject.toml, a
line in `ALLOWED_IMPORTERS` of tests/house/test_imports.py, and tests in tests/retrievers.
"""
