"""Group what is said: wordings similar to a phrase, clusters of phrases, and what no topic covers.

In: an index, and a phrase, phrases, mentions or known topics. Out: `SimilarPhrase`s, `PhraseGroup`s
or a `Discovery`.

Modules in reading order: `types`, `clauses` (spans chosen in a block of passages, with their
words), `word_tree` (words that are the same, and phrases in a text), `similar`; `phrase_table`
(different phrases with their mean vectors), `linkage` (scikit-learn), `groups`, `cluster`;
`small_talk` (clauses of every call) and `discover`.
"""
