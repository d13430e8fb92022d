"""Make judgments of the answers of people who look at spans."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict  # pydantic reads that of the library from 3.12 on

from hybrid_search.async_client import AsyncClient
from hybrid_search.errors import UsageError, put_plainly
from hybrid_search.parameters import MAX_PHRASE
from hybrid_search.search.query import DEFAULTS
from hybrid_search.topics.judgments import Judgment, current_time

_Offset = Annotated[int, Field(ge=0, lt=2**31, strict=True)]
_Phrase = Annotated[str, Field(min_length=1, max_length=MAX_PHRASE)]


@with_config(ConfigDict(extra="forbid"))
class JudgmentBody(TypedDict):
    """An answer to whether a span is what a phrase means."""

    phrase: _Phrase
    id: Annotated[str, Field(min_length=1)]
    start: _Offset
    end: _Offset
    text: str
    answer: Literal["yes", "no"]
    topic: NotRequired[_Phrase]
    index: NotRequired[str]


BODY = TypeAdapter(JudgmentBody)


async def build_judgment(client: AsyncClient, values: dict[str, Any]) -> Judgment:
    """Return the judgment in a body, with the model of its index and the time.

    Raises:
        UsageError: If a value is not allowed, or the span is not in the document.
    """
    body = _parse(values)
    index = body.get("index", DEFAULTS["index"])
    view = await client.open_document(body["id"], index=index)
    start, end = body["start"], body["end"]
    if not start < end or view.text[start:end] != body["text"]:
        raise UsageError(
            f"text is not what document {body['id'][:80]!r} has from {start} to {end}: "
            "send a span of a hit"
        )
    info = await client.describe(index)
    return Judgment(
        topic=body.get("topic", body["phrase"]),
        phrase=body["phrase"],
        id=body["id"],
        start=start,
        end=end,
        text=body["text"],
        answer=body["answer"],
        model=info.spec.fingerprint,
        at=current_time(),
    )


def _parse(values: dict[str, Any]) -> JudgmentBody:
    """Return the body of a judgment; UsageError names the first wrong value."""
    try:
        return BODY.validate_python(values)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
        name = ".".join(map(str, fault["loc"]))
        raise UsageError(
            f"{name or 'the body'} is not allowed: it {put_plainly(fault['msg'])}"
        ) from None
