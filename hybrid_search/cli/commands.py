"""The commands: the help panel, module and two examples of each, and how one is built.

A command is a function that may take ``*, place: Place`` or ``**options: Unpack[QueryOptions]``,
where `Place` and `QueryOptions` are tables of parameters (`hybrid_search.parameters`), whose
parameters become options.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from functools import cache
from pkgutil import resolve_name
from typing import Annotated, Any, get_args, is_typeddict

import typer

from hybrid_search.cli import options
from hybrid_search.cli.command import Command
from hybrid_search.parameters import JSON, Parameter, read_table

COMMAND_PANELS: Mapping[str, str] = {
    "First steps": "ingest query indexes show doctor",
    "Asking": "best-spans check-quote similar cluster discover",
    "Topics": "mine topics judge tune",
    "Index care": "setup attach reindex delete redact verify plan",
    "Services": "serve mcp",
}
"""The commands in the order of the help, by panel."""

COMMANDS = tuple(" ".join(COMMAND_PANELS.values()).split())

MODULES: Mapping[str, str] = {
    "index_admin": "indexes setup reindex delete redact",
    "query": "show best-spans check-quote",
    "grouping": "similar cluster discover",
    "topics": "tune",
    "services": "serve mcp",
    "checks": "doctor verify plan",
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
check-quote "I'd like my money back" --index calls
check-quote "I'd like ... back" --places 10 --json
similar "refund request"
similar "refund request" --speaker customer --size 50
cluster matches.jsonl
cluster matches.jsonl --topic refund --index calls
discover --index calls
discover --topics topics.yaml --speaker customer
mine --topics topics.yaml --out matches.jsonl
mine --topics topics.yaml --out matches.jsonl --report page.html
topics check topics.yaml
topics check topics.yaml --index calls
judge --topics topics.yaml
judge --topics topics.yaml --topic refund --count 20
tune --topics topics.yaml --judgments judgments.jsonl
tune --topics topics.yaml --judgments judgments.jsonl --json
setup --index calls
setup --index calls --url https://HOST:9200 --shards 3
attach --index raw-calls --text transcript
attach --index raw-calls --sync
reindex --index calls --url https://HOST:9200 --policy 4/1
reindex calls.jsonl --index calls --model other-model
delete call-17 call-18 --index calls
delete --index calls --yes
redact --index calls --spans spans.jsonl
redact --spans spans.jsonl --url embedded:FOLDER
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


@cache
def build_command(name: str, kind: type[Command] = Command) -> Any:
    """Return a command, imported on demand: importing all took 35 ms of a query's first 500."""
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


KEYWORD = inspect.Parameter.KEYWORD_ONLY


def build_callback(function: Callable[..., None]) -> Callable[..., None]:
    """Return a function for typer with an option for each parameter of the tables of `function`.

    It calls `function` with the values of each table as a dict, and reports errors.
    """
    signature = inspect.signature(function, eval_str=True)
    tables = {
        item.name: read_table(table)
        for item in signature.parameters.values()
        if (table := _find_table(item))
    }
    expanded: list[inspect.Parameter] = []
    for item in sorted(signature.parameters.values(), key=lambda item: item.kind is KEYWORD):
        table = tables.get(item.name)
        expanded += map(_build_option, table.values()) if table else [item.replace(kind=KEYWORD)]

    @functools.wraps(function)
    def call(**values: Any) -> None:
        with options.report_errors(values.get("log_format"), values.get("log_level")):
            function(**_group(values, signature, tables))

    del call.__wrapped__  # typer would read its types
    call.__annotations__ = {item.name: item.annotation for item in expanded}
    call.__signature__ = signature.replace(parameters=expanded)  # type: ignore[attr-defined]
    return call


def _find_table(item: inspect.Parameter) -> Any:
    """Return the table of parameters that a parameter stands for, None if it is a plain one."""
    if item.kind is inspect.Parameter.VAR_KEYWORD:
        return get_args(item.annotation)[0]
    return item.annotation if is_typeddict(item.annotation) else None


def _group(
    values: dict[str, Any],
    signature: inspect.Signature,
    tables: Mapping[str, Mapping[str, Parameter]],
) -> dict[str, Any]:
    """Return the arguments of a command, with the values of each of its tables in a dict."""
    arguments = dict(values)
    for name, table in tables.items():
        chosen = {key: _convert(item, arguments.pop(key)) for key, item in table.items()}
        if signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
            arguments |= chosen
        else:
            arguments[name] = chosen
    return arguments


def _convert(parameter: Parameter, value: Any) -> Any:
    if parameter.is_conditions:
        value = options.parse_conditions(value)
    elif parameter.value == JSON and value is not None:
        value = options.parse_object(parameter.option_name, value)
    return parameter.convert(value)


def _build_option(parameter: Parameter) -> inspect.Parameter:
    """Return the parameter of a command for a parameter of a table."""
    hint: Any = str if parameter.value == JSON else parameter.kind
    default = parameter.default
    if parameter.has_several:
        hint, default = list[hint], None
    if parameter.has_several or parameter.is_optional:
        hint |= None
    hint = Annotated[hint, options.make_option(parameter)]
    if parameter.is_conditions:
        hint = options.Where
    return inspect.Parameter(parameter.name, KEYWORD, default=default, annotation=hint)
