"""Work on a Ray cluster: `connection` joins one, `allocation` shares it, `actors` do the work.

The executor of ingest encodes in actors, and mining scores in them.
"""
