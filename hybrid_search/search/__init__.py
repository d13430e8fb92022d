"""Query answering: from a phrase to hits with scores, spans and offsets.

Input: a `Query`, an encoder and a backend. Output: a `Result` of `Hit`s.

Modules in reading order: `query` (parameters, their defaults and limits), `pipeline` (all stages in
their order), `phrase_vector` (a phrase to its vector),
`candidates` (retrieve, complete both scores, fuse), `feedback` (a second search with the best spans
of the first), `fusion` (the fusions), `calibration` (the score maps of the
default fusion), `contents` (one fetch of texts and metadata, to sort and count by),
`span_content` (words and turns), `hit` (a hit and its spans), `hit_builder`, `excerpts`
(the sentences around spans, for display), `result_html` and `result_rows` (hits in notebooks, and
as a table), `result` (the whole answer), `damage` (warnings about skipped passages), `no_hits` (why
nothing was found). `types` has the frozen types that pass between these stages. `span_search`
answers without an index, `open_document` makes a view of one whole document, and `quote_search`
finds where a quotation (`quote`) stands, word for word.

CONTRIBUTING.md says where a new parameter and a new fusion go.
"""
