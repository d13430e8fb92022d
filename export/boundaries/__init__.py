"""Train a model's span prior: where clauses end, and how much that counts against the cosine.

In go a model folder and the data sets; out comes ``boundaries.npz`` in that folder. The network
reads only rows that nothing is measured on; the few weights are fitted on the 300 marked requests
of natcs_utterances, too. Needs scikit-learn and SciPy, but no torch.

To read in this order: `corpora` (the rows), `marked_turns` (what people marked), `gaps` (texts with
their punctuation or a marked clause as labels), `encoded` (texts encoded once, for all sizes of
vectors), `network` (the boundary model), `marked` (examples of what a person would mark),
`composed`, `natural` and `examples` (where they come from), `weights` (the weights of the prior),
`training` (all of it in turn), `npz` (the file), `summary` (tables, also for the model card) and
`__main__` (the command).
"""
