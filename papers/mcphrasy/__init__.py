"""McPhraSy: how alike two phrases are, by the sentences that they are used in.

Cohen, Gonen, Shapira, Levy, Goldberg, "McPhraSy: Multi-Context Phrase Similarity and Clustering",
Findings of EMNLP 2022.
"""
