"""Monitoring of a run: progress, metrics and a time profile from its `Summary`.

`reports` combines reports, `metrics` serves the numbers to Prometheus (an extra), `stall_detector`
detects a run without progress, `profile_table` shows where the time went. To add a kind of
monitoring, write a `Report` (`hybrid_search.ingest.options`) in a module of its own.
"""
