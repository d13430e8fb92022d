"""Monitoring of a run: progress and metrics from its `Summary`.

`reports` combines reports, `metrics` detects a run without progress, and serves the numbers to
Prometheus (an extra). To add a kind of monitoring, write a `Report`
(`hybrid_search.ingest.options`) in a module of its own.
"""
