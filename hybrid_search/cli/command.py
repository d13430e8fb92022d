"""`Command`: a command with help in panels, and errors that suggest what was meant."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args, get_type_hints

from typer.core import TyperArgument, TyperCommand

PANELS: Mapping[str, str] = {
    "Source": "from_index from_url retry follow checkpoint encoding split_speakers "
    "language strip_html strip_quotes rejects",
    "Asking": "",
    "Groups": "",
    "Showing": "output_format dry_run",
    "Report": "by date to_index",
    "Server": "url patience policy codes analyzer knn_engine quantization graph_dimension m "
    "ef_construction shards replicas",
    "Model": "model device precision dimension",
    "Cluster": "shard engine workers",
    "Limits": "queries timeout body_kilobytes",
    "Watching": "log_format log_level metrics_port metrics_host",
}
"""The panels after the first, with options of commands, in order.

A parameter of a table names its panel itself. Any other option goes into the first panel, which
newcomers read.
"""

FOLDER = "FOLDER"
TYPES: Mapping[type, str] = {
    str: "NAME",
    int: "NUMBER",
    float: "NUMBER",
    Path: "FILE",
    bool: "",  # a switch takes no value
}
"""Names in the help for the values of options that name none themselves."""


class Command(TyperCommand):
    """A command of the program."""

    def __init__(self, name: str | None, **options: Any) -> None:
        super().__init__(name, **options)
        self.allow_extra_args = True  # `parse_args` refuses them

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help, with the options in panels."""
        self.help = _join_lines(self.help or "")
        describe_options(self, ctx)
        self.params.sort(key=_find_place)
        super().format_help(ctx, formatter)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments; fail if there are too many, or a folder is given for a file."""
        rest: list[str] = super().parse_args(ctx, args)
        if not ctx.resilient_parsing:
            if rest:
                ctx.fail(self._explain_extra(ctx, rest))
            self._check_paths(ctx)
        return rest

    def _explain_extra(self, ctx: Any, rest: list[str]) -> str:
        """Return the message for surplus arguments."""
        words = " ".join(rest)
        options = [param.name for param in self.params if not isinstance(param, TyperArgument)]
        if "text" in options and not ctx.params["text"]:
            phrase = ctx.params["phrase"]
            return f'the text stands behind --text, as in "{phrase}" --text "{words}"'
        taken = [param for param in self.params if isinstance(param, TyperArgument)]
        if len(taken) != 1 or taken[0].nargs != 1:
            return f"unexpected argument {words}"
        name = taken[0].name
        example = f'{ctx.command_path} "{ctx.params[name]} {words}"'
        return f"the {name} has several words: put it in quotes, as in {example}"

    def _check_paths(self, ctx: Any) -> None:
        """Fail if a folder is given for a file, or a file for a folder."""
        for param in self.params:
            value = ctx.params.get(param.name)
            if not isinstance(value, str | Path) or not Path(value).exists():
                continue
            types = find_types(self.callback)
            is_folder, wants_folder = Path(value).is_dir(), param.metavar == FOLDER
            if types[str(param.name)] is Path and is_folder != wants_folder:
                kind, meant = ("folder", "file") if is_folder else ("file", "folder")
                ctx.fail(f"{param.opts[0]} is {str(value)!r}, a {kind}: name a {meant}")


def describe_options(command: Any, ctx: Any) -> None:
    """Assign the options of a command to panels, with their types in plain words."""
    types = find_types(command.callback)
    for param in command.get_params(ctx):
        if isinstance(param, TyperArgument):
            # a metavar would replace its name
            param.display_type_rich = lambda ctx: ""  # type: ignore[method-assign] # noqa: ARG005
        elif param.metavar is None:
            param.metavar = TYPES.get(types.get(param.name, bool))
        param.rich_help_panel = _find_panel(param)


def find_types(callback: Any) -> dict[str, type]:
    """Return the type of each parameter of a command; for lists, the type of the items."""
    hints = get_type_hints(inspect.unwrap(callback))
    return {name: _find_plain_type(hint) for name, hint in hints.items()}


def _find_plain_type(hint: Any) -> Any:
    for part in get_args(hint):  # of ``list[str] | None``
        if part is not type(None):
            return _find_plain_type(part)
    return hint


def _find_panel(param: Any) -> str | None:
    """Return the panel of an option: that of its table, else the one in `PANELS`."""
    if panel := getattr(param, "rich_help_panel", None):
        return str(panel)
    return next((panel for panel, names in PANELS.items() if param.name in names.split()), None)


def _find_place(param: Any) -> tuple[int, int]:
    """Return the number of an option's panel, and its place among those in `PANELS`."""
    panel = _find_panel(param)
    names = PANELS[panel].split() if panel else []
    place = names.index(param.name) if param.name in names else -1
    return [None, *PANELS].index(panel), place


def _join_lines(text: str) -> str:
    """Join each paragraph into one line, so that it can be wrapped to the window."""
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
