"""Topics: every mention of them in an index, reports of mentions, and judgments of spans.

In: a file of topics, an index, judgments of spans. Out: `Match`es, one for each mention.

Modules in reading order: `topic` (what is looked for), `topic_file` and `topics` (many of them,
from a file), `types` (the stages of mining), `topic_matrix` (the phrases as one matrix), `blocks`
(passages scored together), `span_scores` (the spans that are near enough), `mention_choice` (one of
them for each clause), `match` and `match_builder` (a mention with its words), `phrase_feedback`
(phrases moved to what the index says in their place), `mining` (the whole run). `run` writes its
matches with `match_file` (continued after a kill), `match_formats` and `match_parquet`,
and `match` reads them; `since` goes on where an earlier run ended. `matches` are some of them as a
table, `surroundings` the words around one, `report` is a page of them, and `match_upload` makes
documents of them for a server. `topic_distances` compares topics with each other.

`judgments` is what people said of spans, asked for in the order of `judging_queue`.
`tune_run` looks them up in an index, and fits to them what `tuning` stores, by `logistic`;
`mention_calibration` has the map of the shipped model.

`joined_passages` is what mining and the package `discover` (similar phrases, clusters, discovery)
share.
"""
