"""Callbacks of commands: tables among the parameters of a function become options.

A command may take ``*, place: Place`` or ``**options: Unpack[QueryOptions]``, where `Place` and
`QueryOptions` are tables of parameters (`hybrid_search.parameters`).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, get_args, is_typeddict

from hybrid_search.cli import options
from hybrid_search.parameters import Parameter, read_table

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
    is_conditions = parameter.kind is Mapping
    return parameter.convert(options.parse_conditions(value) if is_conditions else value)


def _build_option(parameter: Parameter) -> inspect.Parameter:
    """Return the parameter of a command for a parameter of a table."""
    hint: Any = parameter.kind
    default = parameter.default
    if parameter.has_several:
        hint, default = list[hint], None
    if parameter.has_several or parameter.is_optional:
        hint |= None
    hint = Annotated[hint, options.make_option(parameter)]
    if parameter.kind is Mapping:
        hint = options.Where
    return inspect.Parameter(parameter.name, KEYWORD, default=default, annotation=hint)
