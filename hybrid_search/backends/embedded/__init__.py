"""The embedded backend: indexes in a folder, without a server.

In come encoded passages and requests, out come candidates with scores and word codes. SQLite
stores everything, and counts what BM25 needs. Segments of short codes, derived from the token
codes, propose passages for the span leg, whose spans are then scored exactly. In a large index
they list words by centroids, so that a query reads few of them.

In reading order: `schema` (tables, connections, errors), `writer_lock`, `commits` (counts them, to
notice lost ones), `checksums` (of what is stored), `sql` (statements on documents and passages),
`filter_sql`, `number_columns`, `postings` (what FTS5's tables count), `tokenizer`, `term_sums` and
`value_sums` (which tell whether these tables and the metadata are sound), `bm25` (the BM25 leg),
`short_codes` and `short_code_search` (what they are, and how they are compared), `centroids` and
`centroid_store` (by which words are listed, and where they are recorded), `near_passages` (which
are worth exact scores), `segment_file` (how short codes lie in a file), `segments` (all files of an
index), `segment_builder` and `segment_reader` (what writers and readers have of them),
`checked_codes` (word codes as queries read them), `readers` (connections for many threads),
`writer`, `next_version` (replaces an index), `salvage` (copies what can be read of a damaged file),
`file_check` (SQLite's own checks), `scan` (lists passages with their faults), and `backend`, which
puts them together. A new table goes into `schema`, its statements into `sql`.
"""
