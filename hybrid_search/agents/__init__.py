"""Tools for agents by the Model Context Protocol: `hybrid-search mcp`.

In: calls of tools with the parameters of the Python functions. Out: their results as JSON, errors
as errors of the tool that say nothing about this machine. The tools only read.

Modules in reading order: `tools` (the tools and their parameters), `word_budget`
(answers of few words), `server` (the protocol, over
standard input and output or over HTTP). It needs the extra ``mcp``.

A new tool goes into `tools`, and its name into `docs/agents.md`.
"""
