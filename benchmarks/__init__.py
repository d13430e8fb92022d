"""Measurements of the product: quality, speed, real servers, and faults; never shipped.

In go the public data sets beside the checkout; out comes one JSON file a measurement in
``results/quality``, ``results/speed``, ``results/servers`` or ``results/faults``, and from these
the tables of the pages.

To read in this order: `benchmarks.results` (how a result is stored), `benchmarks.quality.tasks` and
`benchmarks.quality.collection` (the labelled data, ingested), `benchmarks.quality.retrieval` (ways
of ranking), `benchmarks.quality.stsb_context` and `benchmarks.quality.turns` (the sets that models
are chosen on), `benchmarks.quality.hard_sample`, `benchmarks.quality.localisation`,
`benchmarks.quality.topics` and `benchmarks.quality.intents` (where words differ),
`benchmarks.speed`, `benchmarks.servers`, `benchmarks.faults`, `benchmarks.tables`.

A new measurement is a module of one of the four packages; a new table goes into
`benchmarks.tables`. `papers` and `export` import this package; it imports neither.
`benchmarks.faults` borrows the tiny encoder and the fake server of `tests.helpers`.
"""

import os

import hybrid_search  # noqa: F401 (it switches ONNX Runtime's telemetry off)

os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
