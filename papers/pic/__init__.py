"""PiC, phrases in context: Pham, Yoon, Bui, Nguyen, "PiC: A Phrase-in-Context Dataset for Phrase
Understanding and Semantic Search", EACL 2023.

`similarity`: do two phrases mean the same in a sentence (PS)? `ranking`: which phrase of a document
means what a query says (PR-pass, PR-page)? `sense`: which of two places of one phrase has the
query's sense (PSD)? `selection` scores what picks a span of a document, for PR and PSD. `files`
says where the data are looked for. `product` is the PS of the dev sets, by the product's own
`phrase_similarity`.

Measured only, unless a user trains on files of their own: the licence of PiC is CC BY-NC 4.0.
"""

from papers.pic import ranking, selection, sense, similarity

__all__ = ["ranking", "selection", "sense", "similarity"]
