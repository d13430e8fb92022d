"""Estimate the bytes, hours and shards of an index, and the recall of other span policies.

In: an encoder and lines of documents, of which a sample is encoded at once. Out: a `Plan` for any
number of such documents. Nothing is written. In reading order:

    sample                take a sample, and encode it against the clock
    policy_recall         the recall of each span policy against an exhaustive search of the sample
    measured_constants    figures from ``benchmarks/results`` that a sample cannot give
    estimate              from the sample to all documents

A new figure is a field of `Plan`, `Load` or `Hours`, and a row in `hybrid_search.cli.plan`.
"""
