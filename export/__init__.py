"""Make, check and train the model folders that the product loads; never installed with the wheel.

In go a Hugging Face encoder, and for training triples and a recipe; out comes a model folder
(graphs, weights, tokenizer.json, encoder.json, README.md).

To read in this order: `export.train` (the command that trains), `export.training` (its parts),
`export.to_onnx` (the command that exports), `export.smooth`, `export.codes` and
`export.ready_graphs` (the graphs), `export.weights` (their files of weights), `export.check` (the
gate that every export passes), `export.card` (the model card),
`export.mpnet` (the weights of a larger encoder, from PyPI). A new loss goes into
`export.training.losses`, a new recipe into ``recipes/``.

`export.boundaries` is a command of its own, without torch: it trains the span prior of a folder.
"""

import os

import hybrid_search  # noqa: F401 (it switches ONNX Runtime's telemetry off)

os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
