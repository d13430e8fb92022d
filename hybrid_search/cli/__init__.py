"""The command line: ``hybrid-search``, which is also ``python -m hybrid_search``.

In: words and files. Out: text or JSON on standard output, progress and messages on standard error,
and an exit status: 0 (fine), 1 (documents were refused, or a check failed), 2 (nothing could run).
`app` is the program: ``--version``, shell completion, and one line for each error in a command
line, which `usage_errors` words. `commands` lists the commands with their examples, and imports the
one that is asked for; `command` has the panels of their help. Every command is a function in a
module of its name: ingest, query (with best-spans), indexes, show, index_admin (setup, reindex,
delete), verify, doctor, plan, mine, topics, judge, tune, grouping (similar, cluster, discover),
serve, mcp. `ingest_program` is ingest alone. `options` has the options that several commands share
and reports errors; `progress` shows how far an ingest is, `show_result` and `show_plan` show what
came out. A new command is a function with a help text, an entry in `commands`, and a section of its
name in ``docs/cli.md``. Commands parse and print; all work is done by `hybrid_search.client` and
what is below it. That, and rich, is imported inside the command, so that ``--help`` and completion
stay fast.
"""
