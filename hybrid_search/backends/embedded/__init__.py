"""The embedded backend: indexes in a folder, without a server.

In come encoded passages and requests, out come passages with scores and word codes. tantivy keeps
what an index says of its passages: terms, metadata, contents. Their codes lie in files beside it,
written and synced before the commit that has their passages. Words are listed by what their codes
say of their direction: so a query reads few of them to propose passages for the span leg, whose
spans are then scored exactly.

In reading order: `failures` (errors), `writer_lock`, `passage_documents`, `sealed_file` (arrays in
a file), `word_lists` (words by direction), `codes_file` and `codes_folder` (codes of passages, and
all such files), `word_search` (how words and spans are compared), `near_passages` (which passages
are worth exact scores), `facts` (metadata as terms, conditions as queries), `record` (a passage in
tantivy), `record_reader` (a commit of tantivy, searched), `head` and `versions` (what an index is,
and where), `snapshot` (a commit with its codes, and the latest of each index), `turns` (for many
threads), `exact_scores`, `remains` (of what was deleted), `writer`, `next_version` (an index
replaced), `scan` (passages with their faults), and `backend`, which puts them together.
"""
