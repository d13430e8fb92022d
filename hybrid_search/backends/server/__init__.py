"""OpenSearch and Elasticsearch as a backend.

In: entries to write and requests to answer. Out: HTTP requests to one cluster, and the types of
`backends/types.py`. In reading order:

* `backend` is the `Backend`; `own_search` answers queries of an index of this project. `searcher`
  sends its searches, and `head_cache` remembers heads.
* `heads` reads what the server says of the index behind a name. `aliases` creates the versioned
  indexes behind an alias, by the bodies of `mappings`, which also reads the types of metadata
  fields.
* `request_bodies` builds searches, `passage_codec` converts passages to documents and back.
* `leg_search` builds and sends the searches of both legs, whose passages come with word codes.
  `reach` says how far they go.
* `writer` writes documents, each held whole by `document_buffer`, into an index that it may create;
  `scan` lists all passages.
* `attachment` says how an index of another program is read and asked, whose spans are in a sidecar:
  `attached_search` queries it, `attached_contents` cuts its texts, `attached_writer` writes spans.
* `next_version` is blue-green reindexing.
* `dialects` is all that differs between the engines, and `transport` the connection.

A new field of a passage goes into ``mappings/`` and `passage_codec`, a new search into
`request_bodies`, whatever depends on the engine into `dialects`, and whatever depends on the client
library into `transport`.
"""
