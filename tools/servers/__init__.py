"""Start real OpenSearch and Elasticsearch servers on loopback, without Docker.

In: the names of releases. Out: running servers, which end with the process that started them.
``python -m tools.servers`` does it from a shell, `start` from a test. In reading order:

    catalog     the releases: what each is made of, and which Java runs it
    fetch       download from Maven Central
    jdk         find an installed Java
    install     the folder of a release in ``.servers/``, fetched once
    account     the user that a server runs as
    layout      the folder that one server runs in: configuration, data, logs
    guard       the process that ends a server with its starter, or when its time is up
    running     start a server, wait for it, stop it
    security    https and users for Elasticsearch

A new release is a `Release` in catalog. ``java/`` has the programs that some distributions lack.
"""

from tools.servers.catalog import RELEASES, StartError
from tools.servers.running import Running, start
from tools.servers.security import Security, security

__all__ = ["RELEASES", "Running", "Security", "StartError", "security", "start"]
