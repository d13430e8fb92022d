"""Work on phrases in place of queries: topics, and every mention of them in an index.

In: a file of topics, an index, judgments of spans. Out: `Match`es, one for each mention.

Modules in reading order: `topics` (what is looked for) and `topic_file` (its file), `types` (the
stages of mining), `topic_vectors` (the phrases as one matrix), `span_scores` (the spans that are
near enough), `mention_choice` (one of them for each clause), `mining` (the whole run).
`topic_distances` compares topics with each other, `judgments` is what people said of spans.
"""
