"""Usage errors, each as one sentence that suggests what was meant."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from hybrid_search.cli.commands import COMMANDS, list_examples
from hybrid_search.errors import put_plainly, show_value
from hybrid_search.text.near_names import find_near_name


def describe(error: Any, arguments: Sequence[str]) -> str:
    """Return a usage error as one sentence that ends with a pointer to the help."""
    option = getattr(error, "option_name", "")
    if option and hasattr(error, "possibilities"):
        text = f"no such option {option}{suggest(option, _list_options(error.ctx))}"
    elif value := _find_value(error, arguments):
        reason = put_plainly(error.message).rstrip(".")
        reason = f"it {reason}" if reason.startswith("must ") else reason
        text = f"{value}: {reason[:1].lower()}{reason[1:]}"
    else:
        words = " ".join(error.format_message().split()).rstrip(".")
        text = words[:1].lower() + re.sub(r"'(-[\w-]+)'", r"\1", words[1:])
        if text.startswith("missing") and error.ctx and error.ctx.command.name in COMMANDS:
            text += f": as in hybrid-search {list_examples(error.ctx.command.name)[0]}"
    if error.ctx:
        return f"{text} (see {error.ctx.command_path} --help)"
    command = arguments[0] if arguments and arguments[0] in COMMANDS else ""
    return f"{text} (see hybrid-search {command} --help)" if command else text


def suggest(word: str, known_words: Iterable[str]) -> str:
    """Return the end of a message about an unknown word: a suggestion, or nothing."""
    near_word = find_near_name(word, list(known_words))
    return f": did you mean {near_word}?" if near_word else ""


def _list_options(context: Any) -> list[str]:
    """Return the options of the called command."""
    params = context.command.get_params(context) if context else ()
    return [option for param in params for option in param.opts if option.startswith("-")]


def _find_value(error: Any, arguments: Sequence[str]) -> str:
    """Return the option in an error, with its value; "" for other errors."""
    for name in getattr(getattr(error, "param", None), "opts", ()):
        for argument, following in pairwise([*arguments, ""]):
            if argument == name and following:
                return f"{name} is {show_value(following)}"
            if argument.startswith(f"{name}="):
                return f"{name} is {show_value(argument.removeprefix(f'{name}='))}"
    return ""
