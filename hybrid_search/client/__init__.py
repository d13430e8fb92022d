"""`Client`: every operation on the indexes of one backend.

Modules in reading order: `encoders` (the configured model at each of its dimensions), and
`client`, whose `Client` has a method for every operation.
"""

from hybrid_search.client.client import Client

__all__ = ["Client"]
