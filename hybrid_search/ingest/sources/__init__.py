"""Sources: where documents come from. Paths or an index in, `SourceLine`s out.

`choice` picks the source of a command. `files` finds files and opens them by `streams`, in the
encoding that `encodings` sees and the kind that `recognition` sees: `json_texts`, `csv_tables`
(`cell_limit` lets a cell be long), `arrow_tables` (an extra), or one of `formats`.
`python_objects` reads what a program has. `records` makes documents of rows and objects as
`read_options` say, `tables` looks for repeated ids, `turn_rows` makes calls of rows. `inbox`
watches a folder; `rejected` tries refused documents again; `server_index` reads the index of a
server, with `server_filter` and `server_reader`. A new source that is no file gets a field in
`choice.SourceChoice`.
"""
