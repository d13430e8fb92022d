"""Measured figures that no sample can give.

Each names its file in ``benchmarks/results``; all were measured on two shared cores.
"""

LIST_BYTES = 4.3
"""Bytes of lists per word of an embedded index: 4 for its place, and the lists themselves.

9,503,140 for the 2,203,329 words of calls_sgd.
"""

WORD_BYTES = 8.3
"""Bytes per word of an embedded index, on top of all codes: text, terms and layout, compressed.

18,391,522 for the same words.
"""

SERVER_CODE_BYTES = 2.34
"""Bytes of a server's index per byte of word codes, without the vectors.

Codes in base64, text and layout: 1,460,789 bytes for 1,000 words
(``quantization_opensearch-calls_sgd``, 384 dimensions), of which vectors as floats are 320,200, by
487,900 bytes of word codes. The segments had codes in ``_source``, as new ones have until they are
merged; merged, they take less.
"""

VECTOR_SECONDS = 0.2629e-3
"""Seconds that a server takes per vector of a new index.

OpenSearch 3.5.0 wrote 3,804 vectors of 192 bytes a second (``latency_opensearch_288-calls_sgd``),
with its client on the same cores.
"""

INGEST_TIMES = 1.43
"""Seconds of a whole ingest into an embedded index per second of its encoder alone.

194.6 by 136.0 (``ingest-calls_sgd``).
"""

SHARD_BYTES = 50 * 1024**3
"""Largest size of a server's shard, as the makers of both servers advise."""

GPU_TOKENS = (47_000, 667_000)
"""Tokens a second of one small GPU, worst and best case; not measured here.

infinity published 0.41 requests of 115,000 tokens a second for bert-large with ONNX Runtime in
float16 on an NVIDIA L4. The worst case is that figure; the best case is 14.2 times as much, since
twelve layers of 384 take so many times fewer multiplications. The truth is between.
"""
