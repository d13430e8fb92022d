"""Observe: a run's `Summary` in; progress, metrics and a table of its time out.

`reports` combines what a run reports to, `metrics` serves the numbers to Prometheus (an extra),
`stall_detector` says whether a run still makes progress, `profile_table` where its time went. A new
way of watching a run is a `Report` (`hybrid_search.ingest.options`) in a module of its own.
"""
