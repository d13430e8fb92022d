"""Executors run the encoder: they turn blocks of texts into encodings, in the same order.

`base` has the protocol `Executor`, and `ray` runs the encoder on a cluster; in this process
`hybrid_search.ingest.encode` runs it. A new executor gets a module here, a name in `base.EXECUTORS`
and a line in `ClientEncoders.acquire_executor`.
"""
