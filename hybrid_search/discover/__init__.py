"""Group what is said: wordings similar to a phrase, clusters of phrases, and what no topic covers.

In: an index, and a phrase, phrases, mentions or known topics. Out: `SimilarPhrase`s, `PhraseGroup`s
or a `Discovery`.

Modules in reading order: `types`, `clauses` (spans chosen in a block of passages), `span_reader`
(their words), `word_tree` (words that are the same, and phrases in a text), `similar` (the wordings
nearest to a phrase); `phrase_table` (different phrases with their mean vectors), `phrase_source`
and `contexts` (where these come from), `linkage` (scikit-learn), `groups` and `cluster`;
`clause_store` (a sample that fits into memory), `known_topics`, `clause_content` and `small_talk`
(clauses of every call), and `discover`.
"""
