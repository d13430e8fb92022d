"""The embedded backend: indexes in a folder, without a server.

In come encoded passages and requests, out come candidates with scores and token codes. SQLite
stores everything and computes BM25; usearch's graphs, derived from the token codes, find the
passages of the span leg, whose spans are then scored exactly.

In reading order: `schema` (tables, connections, errors), `writer_lock`, `commits` (counts them, to
notice lost ones), `checksums` (of what is stored), `sql` (statements on documents and passages),
`bm25` (the BM25 leg), `graph_segments` (the graph files), `graph_builder` (builds them) and
`graph_reader` (searches them), `readers` (connections for many threads), `writer`, `next_version`
(replaces an index), `salvage` (copies what can be read of a damaged file), `file_check` (SQLite's
own checks), `scan` (lists passages with their faults), and `backend`, which puts them together. A
new table goes into `schema`, its statements into `sql`.
"""
