"""Ingest: JSON lines, tables or a server's index in; an index of passages and token codes out.

Refused documents go to a rejects file, and a `Summary` says what was done. In reading order:
`types` (what passes between the stages), `options`, `pipeline` (the list of stages), `prepare`
(read, parse, look up, split; with `document_parser`, `seen_ids` and `shards`), `encode`, `shape`,
`write` (the state of a document whose passages are spread over blocks). Around them: `prefetch`
(stages overlap), `rejects`, `checkpoint`, `shutdown`, `summary`. `run` is the command ``ingest``.

A new source goes to `sources`, a new place for the encoder to `executors`, a new way of watching
a run to `observe`. A new stage gets its module here, its type in `types` and a line in `pipeline`.
"""
