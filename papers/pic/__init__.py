"""PiC, phrases in context: phrase similarity, retrieval and sense disambiguation.

Pham, Yoon, Bui, Nguyen, "PiC: A Phrase-in-Context Dataset for Phrase Understanding and Semantic
Search", EACL 2023. `similarity`: do two phrases mean the same in a sentence (PS)? `ranking`: which
phrase of a document means what a query says (PR-pass, PR-page)? `sense`: which of two places of one
phrase has the query's sense (PSD)? `selection` scores the span that a reader selects, for PR and
PSD. `files` tells where the data are read from. PS as a dev set of training is
`benchmarks.quality.pic_similarity`.

Measured only, unless a user trains on files of their own: the licence of PiC is CC BY-NC 4.0.
"""

from papers.pic import ranking, selection, sense, similarity

__all__ = ["ranking", "selection", "sense", "similarity"]
