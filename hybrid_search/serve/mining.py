"""`/v1/mine`: the mentions of topics as JSON lines, sent while the index is being searched."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from starlette.responses import StreamingResponse

from hybrid_search.async_client import AsyncClient
from hybrid_search.config import DEFAULT_INDEX
from hybrid_search.errors import HybridSearchError, UsageError
from hybrid_search.parameters import check_text
from hybrid_search.serve.limits import Gate
from hybrid_search.serve.problems import Problem, dump_json, explain_error

JSON_LINES_TYPE = "application/x-ndjson"


async def stream_matches(
    client: AsyncClient, gate: Gate, values: dict[str, Any], place: str
) -> StreamingResponse:
    """Return a response that sends the matches of `client.mine` as they are found.

    Each block of documents is a call of its own, with its own time. Errors before the first block,
    in the topics or the index, are raised; a later one is the last line, without `place`.

    Raises:
        UsageError: If the topics are not a list: a name would be that of a file of this machine.
    """
    topics, index = values["topics"], values.get("index", DEFAULT_INDEX)
    if not isinstance(topics, list):
        raise UsageError(f"topics is a {type(topics).__name__}: it must be a list of topics")
    check_text("index", index)
    blocks = client.mine_blocks(topics, index=index)
    first_block = await gate.run(anext(blocks, None))

    async def send_lines() -> AsyncIterator[bytes]:
        block = first_block
        try:
            while block is not None:
                yield b"".join(_format_line(match.to_dict()) for match in block.matches)
                block = await gate.run(anext(blocks, None))
        except HybridSearchError as error:
            yield _format_line(explain_error(error, place).to_dict())
        except Problem as problem:
            yield _format_line(problem.to_dict())

    return StreamingResponse(send_lines(), media_type=JSON_LINES_TYPE)


def _format_line(value: dict[str, Any]) -> bytes:
    return dump_json(value) + b"\n"
