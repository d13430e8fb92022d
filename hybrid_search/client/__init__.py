"""`Client`: what a program can do with the indexes of one backend.

Modules in reading order: `encoders` (the model that the settings name, at its sizes), `admin` (it
looks after indexes), `mining` (topics), `client` (queries and ingests), which has all methods.
"""

from hybrid_search.client.client import Client

__all__ = ["Client"]
