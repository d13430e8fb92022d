"""Read and validate a file of topics: the only module that imports YAML.

A mistake is one line that names the topic, the key, the value and what is allowed.
"""

from __future__ import annotations

import json
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, NoReturn

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictStr,
    ValidationError,
)

from hybrid_search import parameters
from hybrid_search.errors import UsageError, show_value
from hybrid_search.file_errors import explain_failure
from hybrid_search.text.filters import check_where
from hybrid_search.topics.rule import Rule
from hybrid_search.topics.rule_file import RuleReader
from hybrid_search.topics.topic import Topic

MAX_FILE_BYTES = 4 * 1024 * 1024
"""Bytes of a file of topics: 10,000 topics have fewer."""

MAX_NAME = 200
"""Characters of a topic's name."""

MAX_PHRASES = 100
"""Phrases of one topic, including phrases that are not meant."""

SHOWN_MISTAKES = 5
"""How many mistakes of a file a message names."""

SUFFIXES = (".yaml", ".yml", ".json", ".jsonl")


def _check_name(name: str) -> str:
    parameters.check_phrase("name", name)
    parameters.check_text("name", name, MAX_NAME)
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in name):
        raise ValueError(f"{show_value(name)} has control characters: leave them out")
    return name


def _check_phrase(phrase: str) -> str:
    parameters.check_phrase("phrase", phrase)
    if any("\ud800" <= character <= "\udfff" for character in phrase):
        raise ValueError(f"{show_value(phrase)} has half a character (a lone surrogate): remove it")
    if not any(map(str.isalnum, phrase)):
        raise ValueError(f"{show_value(phrase)} has no word: say what to look for")
    return phrase


def _check_where(where: dict[Any, Any]) -> Mapping[str, Any]:
    for field, criterion in where.items():
        if isinstance(criterion, list) and not criterion:
            raise ValueError(
                f"{show_value(field)} has no values, which no document fulfils: give at least one"
            )
    return check_where(where)


def _list_speakers(value: object) -> object:
    return [value] if isinstance(value, str) else value


DISTINCT = AfterValidator(lambda phrases: tuple(dict.fromkeys(phrases)))
Phrase = Annotated[StrictStr, AfterValidator(_check_phrase)]
Share = Annotated[float, Field(gt=0, lt=1, strict=True)]


class _Topic(BaseModel):
    """The attributes of `Topic`, by the keys of a file."""

    model_config = ConfigDict(extra="forbid", validate_default=True)

    name: Annotated[StrictStr, AfterValidator(_check_name)]
    phrases: Annotated[list[Phrase], Field(min_length=1, max_length=MAX_PHRASES), DISTINCT]
    not_phrases: Annotated[list[Phrase], Field(alias="not", max_length=MAX_PHRASES), DISTINCT] = []
    speakers: Annotated[
        list[Phrase], Field(alias="speaker"), BeforeValidator(_list_speakers), DISTINCT
    ] = []
    where: Annotated[dict[Any, Any], AfterValidator(_check_where)] = {}
    threshold: Share | None = None
    precision: Share | None = None
    notes: StrictStr = ""


class _Rule(BaseModel):
    """The attributes of `Rule`, by the keys of a file; the expression is read by `RuleReader`."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[StrictStr, AfterValidator(_check_name)]
    rule: Any
    threshold: Share | None = None
    notes: StrictStr = ""


KEYS = tuple(model_field.alias or name for name, model_field in _Topic.model_fields.items())
RULE_KEYS = tuple(_Rule.model_fields)

EXPECTATIONS = {
    "string_type": "a string (in quotes, if YAML takes it for a number or a boolean)",
    "list_type": "a list of strings",
    "dict_type": "a mapping of metadata fields to values",
    "too_short": "a list of at least one phrase",
    "too_long": f"a list of at most {MAX_PHRASES} phrases",
    **dict.fromkeys(("float_type", "greater_than", "less_than"), "a number between 0 and 1"),
}
"""The allowed values, by pydantic's name of the mistake."""


def describe_topic() -> dict[str, dict[str, Any]]:
    """Return the JSON Schema of each key of a topic or rule; one without a default is required."""
    properties = _Topic.model_json_schema()["properties"]
    properties["rule"] = {"anyOf": [{"type": "object"}, {"type": "string"}], "default": {}}
    properties["phrases"]["default"] = []
    for schema in properties.values():
        schema.pop("title", None)
    single = {"type": "string"}
    properties["speaker"] = {"anyOf": [single, properties["speaker"]], "default": []}
    return dict(properties)


Parsed = tuple[tuple[Topic, ...], tuple[Rule, ...]]
"""The topics with phrases, and the rules."""


def read_topics(path: Path) -> Parsed:
    """Return the topics and rules of a file.

    Raises:
        UsageError: If it cannot be read, or has a mistake.
    """
    if path.suffix not in SUFFIXES:
        raise UsageError(
            f"{path} has the ending {path.suffix!r}: "
            f"a file of topics ends in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}"
        )
    with (
        explain_failure(f"{path} cannot be read", "name a file of topics"),
        path.open("rb") as file,
    ):
        data = file.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise UsageError(
            f"{path} has more than {MAX_FILE_BYTES:,} bytes: split it into several files"
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 at byte {error.start}: save it as UTF-8") from error
    return parse_topics(_parse_text(text, path), str(path))


def parse_topics(values: object, place: str) -> Parsed:
    """Return topics and rules from what a file holds; `place` names it in messages.

    Raises:
        UsageError: If there is a mistake.
    """
    if not isinstance(values, list):
        raise UsageError(
            f"{place} holds {_describe_type(values)}: a file of topics is a list of mappings with "
            "name and phrases"
        )
    if not values:
        raise UsageError(f"{place} has no topics: give at least one, with name and phrases")
    topics: list[_Topic] = []
    rules: list[_Rule] = []
    mistakes: list[str] = []
    for number, value in enumerate(values, 1):
        try:
            if "rule" in _check_mapping(value):
                rules.append(_Rule.model_validate(value))
            else:
                topics.append(_Topic.model_validate(value))
        except ValidationError as error:
            topic = f"topic {number}{_name_of(value)}"
            mistakes += [f"{topic}: {text}" for text in _describe_errors(error)]
        except UsageError as error:
            mistakes.append(f"topic {number}{error}")
    mistakes += _find_contradictions(topics, rules)
    read_rules, rule_mistakes = _read_rules(values, rules)
    mistakes += rule_mistakes
    if mistakes:
        shown, left = mistakes[:SHOWN_MISTAKES], len(mistakes) - SHOWN_MISTAKES
        more = [f"and {left} more mistake{'s' * (left > 1)}"] if left > 0 else []
        raise UsageError(f"{place}: {'; '.join([*shown, *more])}")
    return tuple(Topic(**dict(topic)) for topic in topics), read_rules


def _read_rules(
    values: Sequence[Any], rules: Sequence[_Rule]
) -> tuple[tuple[Rule, ...], list[str]]:
    """Return the rules of a file with their expressions, and the mistakes in these."""
    named = [
        value for value in values if isinstance(value, dict) and isinstance(value.get("name"), str)
    ]
    topics = [value["name"] for value in named if "rule" not in value]
    expressions = {value["name"]: value["rule"] for value in named if "rule" in value}
    reader = RuleReader(topics, expressions)
    read, mistakes = list[Rule](), list[str]()
    for rule in rules:
        try:
            read.append(Rule(**{**dict(rule), "rule": reader.read(rule.name)}))
        except UsageError as mistake:
            mistakes.append(f"topic {show_value(rule.name)}: {mistake}")
    return tuple(read), mistakes


def _parse_text(text: str, path: Path) -> object:
    try:
        if path.suffix == ".jsonl":
            return list(_parse_lines(text))
        if path.suffix == ".json":
            return json.loads(text, object_pairs_hook=_refuse_duplicates)
        return yaml.load(text, _Loader)  # noqa: S506 (a SafeLoader that refuses duplicate keys)
    except yaml.MarkedYAMLError as error:
        raise UsageError(f"{path} is not YAML: {_describe_yaml_error(error)}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        kind = "JSON" if path.suffix.startswith(".json") else "YAML"
        words = " ".join(str(error).split())
        raise UsageError(f"{path} is not {kind}: {words}") from error


def _parse_lines(text: str) -> Iterator[object]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                yield json.loads(line, object_pairs_hook=_refuse_duplicates)
            except ValueError as error:
                raise ValueError(f"line {number}: {error}") from error


def _describe_yaml_error(error: yaml.MarkedYAMLError) -> str:
    """Return what is wrong, where, and what usually is the remedy."""
    mark = error.problem_mark or error.context_mark
    place = f" in line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    return (
        f"{error.problem or error.context}{place}: put words with : or # in quotes, and indent "
        "with blanks"
    )


class _Loader(yaml.SafeLoader):
    """Reads plain YAML, without aliases: a few of them can stand for gigabytes.

    A date is the text that it is: so metadata has it, and so a condition compares it.
    """

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.events.AliasEvent):
            line = self.line + 1
            raise yaml.YAMLError(f"an alias (*) up to line {line}: write it out")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        mapping = super().construct_mapping(node, deep=deep)
        if len(mapping) < len(node.value):
            keys = Counter(str(key.value) for key, _ in node.value)
            _refuse_key(keys.most_common(1)[0][0], f" in line {node.start_mark.line + 1}")
        return mapping


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _refuse_duplicates(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    keys = Counter(key for key, _ in pairs)
    if len(keys) < len(pairs):
        _refuse_key(keys.most_common(1)[0][0])
    return dict(pairs)


def _refuse_key(key: str, place: str = "") -> NoReturn:
    raise ValueError(
        f"the key {show_value(key)} stands twice in one mapping{place}: keep one of them"
    )


def _check_mapping(value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise UsageError(f" is {show_value(value)}: it must be a mapping with name and phrases")
    for key in value:
        if not isinstance(key, str):
            no = " (YAML takes no, off, yes and on for truth values)" * isinstance(key, bool)
            raise UsageError(
                f"{_name_of(value)}: unknown key {show_value(key)}{no}: the keys are "
                f"{', '.join(KEYS)}"
            )
    return value


def _describe_errors(error: ValidationError) -> Iterator[str]:
    """Yield one sentence for each mistake of a topic."""
    # a key that is misspelled explains the one that is missing
    for details in sorted(error.errors(), key=lambda item: item["type"] != "extra_forbidden"):
        steps = (f"[{step}]" if isinstance(step, int) else step for step in details["loc"])
        place, keys = "".join(steps), RULE_KEYS if error.title == _Rule.__name__ else KEYS
        yield _describe_mistake(place, details["type"], details["input"], details["msg"], keys)


def _describe_mistake(
    place: str, kind: str, value: object, message: str, keys: Sequence[str]
) -> str:
    if kind == "missing":
        return f"it has no {place}: every topic has name, and phrases or rule"
    if kind == "extra_forbidden":
        if place == "phrases":
            return "phrases and rule are both given: give one of them"
        if place in KEYS:
            return f"{place} is {show_value(value)}, beside rule: it belongs to the rule's topics"
        close = get_close_matches(place, (*keys, "rule"), n=1)
        remedy = f"did you mean {close[0]!r}?" if close else f"the keys are {', '.join(keys)}"
        return f"unknown key {show_value(place)}: {remedy}"
    if kind == "value_error":  # one of ours
        return f"{place}: {message.removeprefix('Value error, ')}"
    expected = EXPECTATIONS.get(kind, message)
    return f"{place} is {show_value(value)}: it must be {expected}"


def _find_contradictions(topics: Sequence[_Topic], rules: Sequence[_Rule]) -> Iterator[str]:
    """Yield what is wrong with topics whose keys are right."""
    names = [*(topic.name for topic in topics), *(rule.name for rule in rules)]
    for name, count in Counter(names).items():
        if count > 1:
            yield f"{count} topics have the name {show_value(name)}: give each its own"
    for topic in topics:
        place = f"topic {show_value(topic.name)}"
        if topic.threshold is not None and topic.precision is not None:
            yield f"{place}: threshold and precision are both given: give one of them"
        denied = {_normalize(phrase) for phrase in topic.not_phrases}
        common = [phrase for phrase in topic.phrases if _normalize(phrase) in denied]
        if common:
            phrase = show_value(min(common))
            yield f"{place}: {phrase} is among its phrases and under not: leave it out of one"


def _normalize(phrase: str) -> str:
    return " ".join(phrase.split()).casefold()


def _name_of(value: object) -> str:
    name = value.get("name") if isinstance(value, dict) else None
    return f" ({show_value(name)})" if isinstance(name, str) and name.strip() else ""


def _describe_type(value: object) -> str:
    names = {"NoneType": "nothing", "dict": "a mapping"}
    return names.get(type(value).__name__, f"a {type(value).__name__}")
