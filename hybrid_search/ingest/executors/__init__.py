"""Executors run the encoder: they turn blocks of texts into encodings, in the same order.

`base` has the protocol `Executor`, `local` runs the encoder in this process, `ray` runs it on a
cluster, and `cache` keeps cluster workers from one ingest to the next. A new executor gets a module
here, a name in `base.EXECUTORS` and a line in `ClientEncoders.acquire_executor`.
"""
