"""Topics: every mention of them in an index, reports of mentions, and judgments of spans.

In: a file of topics, an index, judgments of spans. Out: `Match`es, one for each mention.

Modules in reading order: `topics` (what is looked for, read by `topic_file`), `types` (the stages
of mining), `topic_matrix` (the phrases as one matrix), `blocks` (passages scored together),
`span_scores` (the spans that are near enough), `mention_choice` (one of them for each clause),
`match` and `match_builder` (a mention with its words), `mining` (the whole run). A `rule` over
topics is read by `rule_file`; `rule_builder` adds its matches, which `rule_matches` finds with the
numbers of `amounts`, and `rule_check` explains it. `run` writes the matches of a run with
`match_file`, `since` goes on where an earlier run ended, and `report` is a page.

`judgments` is what people said of spans, asked for in the order of `judging_queue`. `tune_run`
looks them up in an index, and fits to them what `tuning` stores, by `logistic`;
`mention_calibration` has the map of the shipped model.
"""
