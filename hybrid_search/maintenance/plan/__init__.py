"""Estimate what indexing takes: bytes, hours, shards, and what other span policies would find.

In: an encoder and lines of documents, of which a sample is encoded at once. Out: a `Plan` for any
number of such documents. Nothing is written. In reading order:

    sample                take a sample, and encode it against the clock
    policy_recall         what each span policy finds of an exhaustive search of the sample
    measured_constants    figures from ``benchmarks/results`` that no sample can give
    estimate              from the sample to all documents

A new figure is a field of `Plan`, `Load` or `Hours`, and a row in `hybrid_search.cli.plan`.
"""
