"""The Model Context Protocol, over standard input and output or over HTTP on this machine."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import mcp_types
import orjson
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from starlette.types import ASGIApp

import hybrid_search
from hybrid_search.agents.tools import list_tools
from hybrid_search.async_client import AsyncClient
from hybrid_search.errors import HybridSearchError, IndexMissingError
from hybrid_search.serve.guard import Guard
from hybrid_search.serve.limits import Gate
from hybrid_search.serve.operations import describe_object
from hybrid_search.serve.options import ServeOptions
from hybrid_search.serve.problems import Problem, dump_json, explain_error
from hybrid_search.serve.server import find_location, open_client, run_app

PATH = "/mcp"
INSTRUCTIONS = (
    "Search transcripts of calls and other documents for what is said, by words and by meaning. "
    "search finds a phrase and the exact words that match; check_quote tells whether somebody said "
    "the words of a quotation, so check those that you give; open_document reads a whole document; "
    "mine_topic lists the mentions of a topic; best_spans looks in one text without an index. "
    "Nothing is changed by any of them."
)

_log = logging.getLogger(__name__)


class AgentServer:
    """Answers calls of tools by one client; no answer tells `place`, where the indexes are."""

    def __init__(self, client: AsyncClient, options: ServeOptions, place: str) -> None:
        self._client, self._place = client, place
        self._gate = Gate(options.queries, options.timeout)

    def build(self) -> Server[Any]:
        """Return the server of the protocol."""
        return Server(
            "hybrid-search",
            version=hybrid_search.__version__,
            instructions=INSTRUCTIONS,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
        )

    async def _list_tools(self, _: Any, __: Any) -> mcp_types.ListToolsResult:
        annotations = mcp_types.ToolAnnotations(
            read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
        )
        tools = [
            mcp_types.Tool(
                name=name,
                description=tool.description,
                input_schema=describe_object(tool.parameters),
                annotations=annotations,
            )
            for name, tool in list_tools().items()
        ]
        return mcp_types.ListToolsResult(tools=tools)

    async def _call_tool(
        self, _: Any, call: mcp_types.CallToolRequestParams
    ) -> mcp_types.CallToolResult:
        tool = list_tools().get(call.name)
        if tool is None:
            return _answer_error(
                f"there is no tool {call.name[:80]!r}: use {', '.join(list_tools())}"
            )
        try:
            answer = await self._gate.run(tool.call(self._client, call.arguments or {}))
        except IndexMissingError:
            names = ", ".join(map(repr, await self._client.indexes())) or "there is none yet"
            return _answer_error(f"there is no index of this name: the indexes are {names}")
        except HybridSearchError as error:
            return _answer_error(explain_error(error, self._place).detail)
        except Problem as problem:
            return _answer_error(problem.detail)
        except Exception:
            _log.exception("the tool %s failed", call.name)
            return _answer_error("the tool failed: the log of this server says why")
        return _answer(answer)


def _answer(value: dict[str, Any]) -> mcp_types.CallToolResult:
    """Return a value as JSON, and as text for clients that read only that."""
    text = dump_json(value)
    content = mcp_types.TextContent(type="text", text=text.decode())
    return mcp_types.CallToolResult(content=[content], structured_content=orjson.loads(text))


def _answer_error(message: str) -> mcp_types.CallToolResult:
    content = mcp_types.TextContent(type="text", text=message)
    return mcp_types.CallToolResult(content=[content], is_error=True)


def serve_stdio(options: ServeOptions, place: Mapping[str, Any]) -> None:
    """Answer requests from standard input on standard output, until the input ends.

    Anything else that is printed goes to standard error.
    """

    async def run() -> None:
        async with open_client(options, place) as client, stdio_server() as (incoming, outgoing):
            server = AgentServer(client, options, find_location(place)).build()
            await server.run(incoming, outgoing, server.create_initialization_options())

    asyncio.run(run())


def serve_http(
    options: ServeOptions, place: Mapping[str, Any], announce: Callable[[str], None]
) -> None:
    """Answer over HTTP at `PATH` until SIGTERM or SIGINT; parameters as in `serve`."""

    @asynccontextmanager
    async def open_app(client: AsyncClient) -> AsyncIterator[ASGIApp]:
        server = AgentServer(client, options, find_location(place)).build()
        app = server.streamable_http_app(
            streamable_http_path=PATH,
            json_response=True,
            stateless_http=True,
            max_request_body_size=options.body_bytes,
            host=options.host,
        )
        async with server.session_manager.run():
            yield Guard(app, options, lambda *_: None)

    run_app(options, place, open_app, lambda url: announce(f"{url}{PATH}"))
