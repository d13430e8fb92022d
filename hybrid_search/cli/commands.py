"""The commands: the help panel, module and two examples of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pkgutil import resolve_name
from typing import Any

import typer

from hybrid_search.cli.callback import build_callback
from hybrid_search.cli.command import Command

COMMAND_PANELS: Mapping[str, str] = {
    "First steps": "ingest query indexes show doctor",
    "Asking": "best-spans similar cluster discover",
    "Topics": "mine topics judge tune",
    "Index care": "setup reindex delete verify plan",
    "Services": "serve mcp",
}
"""The commands in the order of the help, by panel."""

COMMANDS = tuple(" ".join(COMMAND_PANELS.values()).split())

MODULES: Mapping[str, str] = {
    "index_admin": "indexes setup reindex delete",
    "query": "show best-spans",
    "grouping": "similar cluster discover",
    "topics": "tune",
    "services": "serve mcp",
}
"""The commands of modules with other names."""

EXAMPLES = """\
ingest calls.jsonl --index calls
ingest calls.csv --columns id=call_id,text=body
query "refund request" --index calls
query "refund request" --where sector=bank --size 20 --json
indexes
indexes --url embedded:FOLDER --json
show call-17 --index calls
show call-17 --phrase "refund request"
doctor
doctor --index calls --json
best-spans "refund request" --text "I want my money back."
best-spans --file pairs.jsonl --k 3
similar "refund request"
similar "refund request" --speaker customer --size 50
cluster matches.jsonl
cluster matches.jsonl --topic refund --index calls
discover --index calls
discover --topics topics.yaml --speaker customer
mine --topics topics.yaml --out matches.jsonl
mine --topics topics.yaml --out matches.jsonl --report page.html
topics check topics.yaml
topics check topics.yaml --json
judge --topics topics.yaml
judge --topics topics.yaml --topic refund --count 20
tune --topics topics.yaml --judgments judgments.jsonl
tune --topics topics.yaml --judgments judgments.jsonl --json
setup --index calls
setup --index calls --url https://HOST:9200 --shards 3
reindex --index calls --url https://HOST:9200 --policy 4/1
reindex calls.jsonl --index calls --model other-model
delete call-17 call-18 --index calls
delete --index calls --yes
verify --index calls
verify --index calls --repair
plan calls.jsonl
plan calls.jsonl --documents 1000000
serve
serve --host 0.0.0.0 --token-file token
mcp
mcp --http --port 8080
"""
"""Two examples of each command, without the name of the program."""


class Commands(Mapping[str, Any]):
    """The commands by name, each imported and built on demand.

    Importing all of them took 35 ms of a query's first half second.
    """

    def __getitem__(self, name: str) -> Any:
        return build_command(name)

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


@cache
def build_command(name: str, kind: type[Command] = Command) -> Any:
    """Return a command, as a class of commands has it."""
    panel = find_group(name, COMMAND_PANELS)
    module = find_group(name, MODULES) or name
    program = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    program.command(name, cls=kind, rich_help_panel=panel, epilog=format_examples(name))(
        build_callback(resolve_name(f"{__package__}.{module}:{name.replace('-', '_')}"))
    )
    return typer.main.get_command(program)


def find_group(name: str, groups: Mapping[str, str]) -> str | None:
    """Return the group of `groups` that a command is in, if there is one."""
    return next((group for group, names in groups.items() if name in names.split()), None)


def list_examples(name: str) -> list[str]:
    """Return the examples of a command."""
    return [line for line in EXAMPLES.splitlines() if line.split()[0] == name]


def format_examples(name: str) -> str:
    """Return the examples of a command, as shown at the end of its help."""
    lines = (f"  hybrid-search {example}" for example in list_examples(name))
    return "\n\n".join(["Examples:", *lines])
