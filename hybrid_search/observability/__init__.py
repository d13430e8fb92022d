"""Log records, trace blocks and counters of a running process.

In: log records and the names of work in progress, from every other package. Out: lines or JSON on
standard error, OpenTelemetry traces where its API is installed, and counts for the metrics.

Modules in reading order: `escapes` (characters that a terminal obeys), `logs` (format and level of
the records) and `tracing` (trace blocks and counters). A new output format goes into `logs`, a new
counter into `tracing.counts`. This package imports no other one of the project, so everything may
use it.
"""
