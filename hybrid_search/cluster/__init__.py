"""Work on a Ray cluster: `connection` joins one, `allocation` shares it, `actors` do the work.

What an actor does is its user's: the executor of ingest encodes in them, mining scores in them.
"""
