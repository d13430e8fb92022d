"""Quality of ranking: BM25, spans, their fusion and one vector a passage, on labelled queries."""
