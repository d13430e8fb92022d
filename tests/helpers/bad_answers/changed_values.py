"""Right answers with something changed wherever it occurs: a type of value, or a key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hybrid_search.backends.types import SCHEMA
from tests.helpers.bad_answers.exchange import BadAnswer, change_answer


def _change_inside(value: Any, change: Callable[[Any], Any]) -> Any:
    """Change a value and every value inside it, from the inside out."""
    if isinstance(value, dict):
        return change({key: _change_inside(inner, change) for key, inner in value.items()})
    if isinstance(value, list):
        return change([_change_inside(inner, change) for inner in value])
    return change(value)


def _each(change: Callable[[Any], Any]) -> BadAnswer:
    """Change every value of an answer, but not an object that is all of it."""
    return change_answer(
        lambda answer: (
            {key: _change_inside(value, change) for key, value in answer.items()}
            if isinstance(answer, dict)
            else _change_inside(answer, change)
        )
    )


def _replace(kind: type, value: Any) -> BadAnswer:
    """Replace every value of one type, except booleans, which Python counts as numbers."""
    return _each(lambda inner: value if type(inner) is kind else inner)


def _change_objects(change: Callable[[dict[str, Any]], Any]) -> BadAnswer:
    return _each(lambda value: change(value) if isinstance(value, dict) else value)


def _remove(name: str) -> BadAnswer:
    return _change_objects(
        lambda value: {key: inner for key, inner in value.items() if key != name}
    )


def _set(name: str, new: Any) -> BadAnswer:
    """Replace the value of a key wherever it occurs."""

    def replace(value: Any) -> Any:
        return {**value, name: new} if isinstance(value, dict) and name in value else value

    return change_answer(lambda answer: _change_inside(answer, replace))


CHANGED: dict[str, BadAnswer] = {
    "every text is a number": _replace(str, 7),
    "every text is null": _replace(str, None),
    "every text is a list": _replace(str, ["x"]),
    "every whole number is a text": _replace(int, "many"),
    "every whole number is negative": _replace(int, -7),
    "every whole number is an object": _replace(int, {}),
    "every number is not one": _replace(float, float("nan")),
    "every number is without end": _replace(float, float("inf")),
    "every boolean is a text": _replace(bool, "perhaps"),
    "every list is null": _replace(list, None),
    "every list is an object": _replace(list, {}),
    "every list is in a list": _each(lambda value: [value] if isinstance(value, list) else value),
    "every inner object is null": _replace(dict, None),
    "every inner object is a list": _replace(dict, []),
    "every inner object is a text": _replace(dict, "x"),
    "every inner key is another": _change_objects(
        lambda value: {f"{key}x": inner for key, inner in value.items()}
    ),
    "hits without _id": _remove("_id"),
    "hits without _source": _remove("_source"),
    "hits without fields": _remove("fields"),
    "hits without _score": _remove("_score"),
    "hits without sort": _remove("sort"),
    "an empty sort": _set("sort", []),
    "ids that name no passage": _set("_id", "kettle"),
    "ids with a huge number": _set("_id", "kettle#" + "9" * 5000),
    "word codes that are not base64": _set("tokens", ["***"]),
    "word codes of nothing": _set("tokens", ["AAAA"]),
    "a layout that is not JSON": _set("layout", "["),
    "a layout of numbers": _set("layout", "[1, 2]"),
    "metadata that is a text": _set("metadata", "x"),
    "a text that does not fit the marks": _set("highlight", {"text": ["else"]}),
    "a _meta that is a text": _set("_meta", "x"),
    "a _meta with a text of ours": _set("_meta", {"hybrid_search": "x"}),
    "a _meta with half of ours": _set("_meta", {"hybrid_search": {"schema": SCHEMA, "model": "x"}}),
    "a field type that is a list": _set("type", ["keyword"]),
    "properties that are a list": _set("properties", ["text"]),
    "settings that are not numbers": _set("settings", {"index.number_of_shards": "x"}),
    "no settings": _set("settings", {}),
    "a status that is a text": _set("status", "created"),
}
