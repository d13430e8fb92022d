"""The command line: ``hybrid-search``, which is also ``python -m hybrid_search``.

Input: arguments and files. Output: text or JSON on standard output, progress and messages on
standard error, and an exit status: 0 (success), 1 (documents were refused, or a check failed), 2
(nothing could run). `app` is the program: ``--version``, shell completion, and one line for each
usage error. `commands` lists the commands with their examples, and imports the requested one;
`command` has the panels of their help. Every command is a function in a module of its name, or in
one with others: ingest, query (best-spans, show), index_admin (setup, indexes, reindex, delete),
checks (verify, doctor, plan), mine, topics (tune), judge, grouping (similar, cluster, discover),
services (serve, mcp). `options` has the options that several commands share and reports errors;
`progress` shows the progress of an ingest, `show_result` prints results. A new command is a
function with a help text, an entry in `commands`, and a section in ``docs/cli.md``. Commands parse
and print; `hybrid_search.client` and the packages below it do the work. They and rich are imported
inside the command, so that ``--help`` and completion stay fast.
"""
