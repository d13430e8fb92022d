"""The embedded backend: SQLite is the truth, usearch finds, nothing needs a server."""
