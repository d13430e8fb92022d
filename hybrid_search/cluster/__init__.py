"""Work on a Ray cluster: `actors` join one, share it, and do the work.

The executor of ingest encodes in actors, and mining scores in them.
"""
