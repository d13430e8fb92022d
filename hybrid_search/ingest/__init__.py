"""Ingestion: from JSON lines, tables or a server's index to an index of passages.

Refused documents go to a rejects file, and a `Summary` counts what was done. In reading order:
`types` (the types that pass between the stages), `options`, `pipeline` (the list of stages),
`prepare` (read, parse, look up, split; with `document_parser`, `seen_ids` and `shards`), `encode`
(and shape), `write` (which tracks a document whose passages are spread over blocks). Around them:
`prefetch` (runs stages in parallel), `rejects`, `checkpoint`, `summary` and `metrics`.
`run` implements the command ``ingest``.

Add a source to `sources`, and a place to run the encoder to `executors`. A new stage gets a module
here, a type in `types` and a line in `pipeline`.
"""
