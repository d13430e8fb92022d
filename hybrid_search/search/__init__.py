"""Answer queries: from a phrase to hits with scores, spans and offsets.

In: a `Query`, an encoder and a backend. Out: a `Result` of `Hit`s.

Modules in reading order: `query` (parameters and defaults), `parameters` (the checks of their
values), `pipeline` (all stages in their order), `phrase_vector` (a phrase to its vector),
`candidates` (retrieve, complete both scores, fuse), `feedback` (ask again with what was found),
`fusion` (a package: one module a fusion),
`calibration` (the maps of the default fusion), `contents` (one fetch of texts and metadata),
`facets` (sort and count), `span_content` (words and turns), `hit_builder`, `refine`, `result` (the
public classes), `excerpts` (the sentences around spans, for people), `result_html` and
`result_rows` (a result in notebooks, and as a table), `damage` (warnings of what was left out),
`no_hits` (why nothing was found).
`types` holds the frozen types between these stages. `span_search` answers without an index, and
`open_document` makes a `document_view` of one whole document.

A new parameter goes into `query.py`, both in `Query` and in `QueryOptions`; a test then names the
docstring and the command line's option that lack it. A new fusion goes into `fusion`.
"""
