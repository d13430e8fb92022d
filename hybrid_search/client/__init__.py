"""`Client`: every operation on the indexes of one backend.

Modules in reading order: `encoders` (the configured model at each of its dimensions), `admin`
(index management), `mining` (topics), `grouping` (groups of phrases), `client` (queries and
ingests), whose `Client` has all methods.
"""

from hybrid_search.client.client import Client

__all__ = ["Client"]
