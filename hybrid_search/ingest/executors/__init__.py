"""Executors: where the encoder runs. Blocks of texts in, their encodings out, in the same order.

`base` has the protocol `Executor`, `local` runs the encoder in this process, `ray` on a cluster,
and `cache` keeps the workers of a cluster from one ingest to the next. A new executor gets a module
here, a name in `base.EXECUTORS` and a line in `ClientEncoders.acquire_executor`.
"""
