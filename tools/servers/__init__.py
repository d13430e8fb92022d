"""Real servers for the tests, without Docker: fetched once into ``.servers/``, started on loopback,
gone with the process that started them.
"""

from tools.servers.catalog import RELEASES, StartError
from tools.servers.running import Running, start
from tools.servers.security import Security, security

__all__ = ["RELEASES", "Running", "Security", "StartError", "security", "start"]
