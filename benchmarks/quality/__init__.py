"""Quality of ranking on labelled queries: BM25, spans, their fusion, one vector a passage."""
