"""Texts and their spans: all computation that needs no encoder and no index.

Input: a `Document` of turns, and the token vectors that the encoder returns for it. Output:
passages to encode, their `WordCodes`, and the exact cosine of a phrase with every span.

Modules in reading order: `types` (the frozen stage types and the map of all stages), `words` (word
segmentation), `stems` (the terms of BM25), `passages` (document to passages), `spans` (the
mathematics of spans), `word_codes` (token vectors to stored codes), `best_passages`
(the passages with the nearest spans that count), `boundaries` (where clauses end),
`span_prior` (a prior for spans from these boundaries), `window_policy` (the spans that become kNN
vectors), `name_lists` (names in messages), `values` (text that holds a date or number), `filters`
(conditions on metadata, with an index and without).

Add a stage type to `types`, a way to split text to `passages`, and arithmetic on spans to `spans`.
Nothing here reads files, imports a model or depends on a backend.
"""
