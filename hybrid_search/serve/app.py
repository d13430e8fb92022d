"""The routes of the service: each calls a method of the client and answers with its result."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

import hybrid_search
from hybrid_search.async_client import AsyncClient
from hybrid_search.config import DEFAULT_INDEX
from hybrid_search.errors import HybridSearchError, UsageError
from hybrid_search.parameters import check_text
from hybrid_search.serve import openapi
from hybrid_search.serve.guard import Guard
from hybrid_search.serve.judging import build_judgment
from hybrid_search.serve.limits import JSON_TYPE, Gate, read_object
from hybrid_search.serve.metrics import RequestMetrics
from hybrid_search.serve.operations import check_names, list_operations
from hybrid_search.serve.options import ServeOptions
from hybrid_search.serve.problems import Problem, build_response, dump_json, explain_error
from hybrid_search.serve.signatures import Schema
from hybrid_search.topics.judgments import Judgment, append_judgments, read_judgments

PAGE_FOLDER = Path(__file__).parent / "static"

JSON_LINES_TYPE = "application/x-ndjson"
NUMBER_TYPES: dict[str, Callable[[str], float]] = {"integer": int, "number": float}

_log = logging.getLogger(__name__)


class Service:
    """Answers requests by one client; no answer tells `place`, where the indexes are."""

    def __init__(self, client: AsyncClient, options: ServeOptions, place: str) -> None:
        self._client, self._options, self._place = client, options, place
        self._gate = Gate(options.queries, options.timeout)
        self._judging = asyncio.Lock()  # judgments are written one after the other
        self._metrics = RequestMetrics(self._gate)

    def build_app(self) -> ASGIApp:
        """Return the application with all routes."""
        routes = [
            Route("/", self._show_page),
            Mount("/static", StaticFiles(directory=PAGE_FOLDER)),
            Route("/v1/query", partial(self._call, "query"), methods=["POST"]),
            Route("/v1/check-quote", partial(self._call, "check_quote"), methods=["POST"]),
            Route("/v1/best-spans", partial(self._call, "best_spans"), methods=["POST"]),
            Route("/v1/mine", self._mine, methods=["POST"]),
            Route("/v1/documents/{id:path}", self._open_document),
            Route("/v1/indexes", self._list_indexes),
            Route("/v1/judgments", self._answer_judgments, methods=["GET", "POST"]),
            Route("/openapi.json", self._describe),
            Route("/healthz", self._tell_health),
            Route("/metrics", self._list_metrics),
        ]
        handlers: Mapping[Any, Any] = {
            HybridSearchError: self._answer_error,
            HTTPException: _answer_http_error,
            Problem: _answer_problem,
        }
        app = Starlette(routes=routes, exception_handlers=handlers)
        return Guard(app, self._options, self._metrics.add)

    async def _call(self, operation: str, request: Request) -> Response:
        values = await read_object(request, self._options)
        return await self._answer(operation, values)

    async def _answer(self, operation: str, values: dict[str, Any]) -> Response:
        call = list_operations()[operation].call(self._client, values)
        return answer_json(await self._gate.run(call))

    async def _mine(self, request: Request) -> Response:
        values = await read_object(request, self._options)
        check_names(values, openapi.list_mining_parameters())
        return await stream_matches(self._client, self._gate, values, self._place)

    async def _open_document(self, request: Request) -> Response:
        values = _read_parameters(request, openapi.list_document_parameters())
        return await self._answer(
            "open_document", {"document_id": request.path_params["id"], **values}
        )

    async def _list_indexes(self, _: Request) -> Response:
        names = await self._gate.run(self._client.indexes())
        indexes = [await self._describe_index(name) for name in names]
        return answer_json({"indexes": indexes, "judgments": self._options.judgments is not None})

    async def _describe_index(self, name: str) -> dict[str, Any]:
        """Return the description of an index; an index that cannot be read has only its name."""
        try:
            info = await self._gate.run(self._client.describe(name))
        except HybridSearchError as error:
            _log.warning("index %r cannot be described: %s", name, error)
            return {"name": name}
        return {"name": name, **info.to_dict()}

    async def _answer_judgments(self, request: Request) -> Response:
        """List the judgments that hold, or add one."""
        path = self._options.judgments
        if path is None:
            raise Problem(404, "judgments are not taken: start the service with --judgments FILE")
        if request.method == "POST":
            values = await read_object(request, self._options)
            judgment = await self._gate.run(self._add_judgment(path, values))
            return answer_json(judgment.to_dict())
        judgments = await self._gate.run(self._read_judgments(path))
        return answer_json({"judgments": [judgment.to_dict() for judgment in judgments]})

    async def _add_judgment(self, path: Path, values: dict[str, Any]) -> Judgment:
        judgment = await build_judgment(self._client, values)
        async with self._judging:
            await asyncio.to_thread(append_judgments, path, [judgment])
        return judgment

    async def _read_judgments(self, path: Path) -> list[Judgment]:
        """Return the judgments that hold; none if there is no file yet."""
        async with self._judging:
            return await asyncio.to_thread(read_judgments, path) if path.exists() else []

    async def _describe(self, _: Request) -> Response:
        return answer_json(openapi.build_description())

    async def _tell_health(self, _: Request) -> Response:
        return answer_json({"status": "ok", "version": hybrid_search.__version__})

    async def _list_metrics(self, _: Request) -> Response:
        return Response(self._metrics.format(), media_type=self._metrics.content_type)

    async def _show_page(self, _: Request) -> Response:
        return FileResponse(PAGE_FOLDER / "index.html", headers={"Cache-Control": "no-cache"})

    async def _answer_error(self, _: Request, error: HybridSearchError) -> Response:
        return build_response(explain_error(error, self._place))


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


def answer_json(value: Mapping[str, Any]) -> Response:
    """Return a response with a value as JSON."""
    return Response(dump_json(value), media_type=JSON_TYPE)


def _read_parameters(request: Request, schemas: Mapping[str, Schema]) -> dict[str, Any]:
    """Return the parameters of a query string with the types that their schemas have."""
    texts = dict(request.query_params)
    if len(texts) < len(request.query_params.multi_items()):
        raise UsageError("a parameter is given twice: give it once")
    check_names(texts, schemas)
    return {name: _parse(name, text, schemas[name]) for name, text in texts.items()}


def _parse(name: str, text: str, schema: Schema) -> Any:
    parse = NUMBER_TYPES.get(schema.get("type", ""))
    if parse is None:
        return text
    try:
        return parse(text)
    except ValueError:
        raise UsageError(f"{name} is {text[:80]!r}: it must be a number") from None


async def _answer_problem(_: Request, problem: Problem) -> Response:
    return build_response(problem)


async def _answer_http_error(_: Request, error: HTTPException) -> Response:
    """Return Starlette's own errors, a wrong path or method, as problems."""
    headers = error.headers or {}
    if error.status_code == 405:
        detail = f"this path does not take this method: use {headers.get('Allow', 'another one')}"
    else:
        detail = "there is nothing at this path: GET /openapi.json lists what there is"
    return build_response(Problem(error.status_code, detail, headers=headers))
