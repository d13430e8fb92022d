"""Texts and their spans: everything that is computed without an encoder or an index.

In: a `Document` of turns, and the token vectors that the encoder returns for it. Out: passages to
encode, their `TokenCodes`, and the exact cosine of a phrase with every span.

Modules in reading order: `types` (the frozen stage types and the map of all stages), `words` (what
a word is), `terms` (what BM25 counts), `passages` (document to passages), `spans` (the mathematics
of spans), `token_codes` (token vectors to codes that are stored), `boundaries` (where clauses end),
`span_prior` (what that says of a span), `window_policy` (the spans that become kNN vectors),
`name_lists` (names in messages), `values` (texts that are dates or numbers), `filters` (conditions
on metadata) and `selection` (the same without an index).

A new stage type goes into `types`, a new way to cut text into `passages`, new arithmetic on spans
into `spans`. Nothing here reads files, imports a model or knows a backend.
"""
