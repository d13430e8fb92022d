"""Commands that look after an installation and its indexes; no search uses them.

    plan       estimate what indexing takes, from a sample of the documents that is encoded now
    doctor/    check the machine, the model, and the place of the indexes, with remedies
    verify/    check that an index is complete, and encode a sample of it again to compare
    reindex    put a new version of an index in the place of the old one

Only reindex and a repair write. A new kind of report is a module or package here, and a command in
`cli`.
"""
