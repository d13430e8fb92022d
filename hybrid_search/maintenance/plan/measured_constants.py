"""Measured figures that no sample can give.

Each names the file of ``benchmarks/results`` that it is from; two shared cores made them all.
"""

GRAPH_BYTES = 148
"""Of an embedded graph for each vector, beside a byte for each of its numbers: 200,015,148 bytes
for 458,354 vectors of 288 numbers (``size-calls_sgd``), and as many a vector in
``size-calls_qmsum``.
"""

WORD_BYTES = 32
"""Of an embedded index for each word, beside codes and graphs (text, its inverted index, layout):
31.8 in ``size-calls_sgd``, 25.3 in ``size-calls_qmsum``.
"""

SERVER_CODE_BYTES = 2.34
"""Of a server's index for each byte of token codes, with all but the vectors (codes in base64,
text, layout): 1,460,789 bytes for 1,000 words (``quantization_opensearch-calls_sgd``, 384 numbers a
vector), of which vectors as floats are 320,200, by 487,900 bytes of codes.
"""

VECTOR_SECONDS = 0.0626e-3
NUMBER_SECONDS = 0.5266e-6
"""Of a server for each vector, and for each of its numbers: OpenSearch 3.5.0 wrote 7,691 vectors of
128 and 4,667 of 288 a second (``latency_opensearch_128-calls_sgd``,
``latency_opensearch_288-calls_sgd``), its client on the same cores.
"""

INGEST_TIMES = 1.43
"""Seconds of a whole ingest into an embedded index for each second of its encoder alone: 194.6 by
136.0 (``ingest-calls_sgd``).
"""

SHARD_BYTES = 50 * 1024**3
"""Of a server's shard at most: what the makers of both servers advise."""

GPU_TOKENS = (47_000, 1_330_000)
"""Tokens a second of one small GPU, not measured here: what infinity published of ONNX Runtime in
float16 on an NVIDIA L4 for bert-large (0.41 requests of 115,000 tokens), as it is, and by the 28.4
times fewer multiplications of six layers of 384. The truth is between.
"""
