"""The embedded backend: indexes in a folder, without a server.

In come encoded passages and requests, out come candidates with scores and word codes. tantivy keeps
what an index says of its passages: terms, metadata, contents. Their codes lie in files beside it,
written and synced before the commit that has their passages. Short codes, made of the word codes,
propose passages for the span leg, whose spans are then scored exactly; in a large index words are
listed by centroids, so that a query reads few of them.

In reading order: `failures` (errors), `writer_lock`, `passage_documents`, `short_codes`,
`word_lists` and `short_code_search` (what short codes are, and how they are compared),
`near_passages` (which passages are worth exact scores), `sealed_file` (arrays in a file),
`codes_file` and `codes_folder` (codes of passages, and all such files), `facts` (metadata as terms,
conditions as queries), `record` (a passage in tantivy), `record_reader` (a commit of tantivy,
searched), `head` and `versions` (what an index is, and where), `snapshot` (a commit with its
codes), `turns` and `snapshots` (the latest of each index, for many threads), `exact_scores`,
`writer`, `salvage` and `next_version` (an index replaced, as far as it can be read), `file_check`,
`scan` (passages with their faults), and `backend`, which puts them together.
"""
