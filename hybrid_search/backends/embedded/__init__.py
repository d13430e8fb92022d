"""Indexes on this machine in tantivy, with sealed files of codes beside it.

In come encoded passages and requests, out come candidates with scores and word codes. tantivy
keeps what an index says of its passages: terms, metadata, contents. Their codes lie in files beside
it, written and synced before the commit that names their passages. How short codes propose
passages is that of `backends.embedded`.

In reading order: `failures` (errors), `checksums`, `sealed_file` (arrays in a file), `codes_file`,
`codes_folder` (codes of passages, and all such files), `facts` (metadata as terms, conditions as
queries), `record` (a passage in tantivy), `record_reader` (a commit of tantivy, searched), `head`
and `versions` (what an index is, and where), `snapshot` (a commit with its codes), `snapshots` (the
latest of each index), `exact_scores`, `writer`, `salvage` and `next_version` (an index replaced, as
far as it can be read), `file_check`, `scan` (passages with their faults), and `backend`, which puts
them together.
"""
