"""The evaluations of three papers (SLICE, PiC, McPhraSy), reproduced; never shipped.

In go the data folder and a system (an encoder or a scorer, by name); out comes one JSON in
``results/`` for each task and system, from which docs/papers.md is filled.

To read in this order: `papers.systems` (what can be measured), `papers.pic`, `papers.mcphrasy` and
`papers.answers` (the tasks), `papers.evaluations` (all tasks by name), `papers.__main__` (the
command), `papers.measured` (the results), `papers.tables`, `papers.significance` and `papers.plots`
(the page). What the papers print is in ``published/``.

A new system goes into `papers.systems.registry`, a new task into `papers.evaluations`. This package
imports `benchmarks` and `export`; neither imports it.
"""

import os

import hybrid_search  # noqa: F401 (it switches ONNX Runtime's telemetry off)

os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
