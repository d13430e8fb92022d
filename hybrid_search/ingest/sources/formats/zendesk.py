"""Zendesk: tickets with their comments, from an export or from the API.

https://developer.zendesk.com/api-reference/ticketing/tickets/tickets/
https://developer.zendesk.com/api-reference/ticketing/tickets/ticket_comments/
https://support.zendesk.com/hc/en-us/articles/4408886165402 (JSON export)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hybrid_search.ingest.document_parser import stringify_number
from hybrid_search.ingest.sources.formats.base import json_format
from hybrid_search.ingest.sources.formats.turns import Turn, make_document, make_turn, pick

OWN_FIELDS = ("via", "custom_fields", "raw_subject", "satisfaction_rating", "brand_id")
"""Fields of a ticket that are specific to Zendesk."""
KEPT = ("subject", "status", "priority", "type", "tags", "created_at", "updated_at")
KEPT_IDS = ("requester_id", "assignee_id", "organization_id", "group_id")
"""Fields of a ticket that become metadata, ids as text."""

END_USER, AGENT = "end-user", "agent"
"""Roles of users, as Zendesk names them."""


def build(export: Any, id: str) -> Iterator[dict[str, Any]]:
    """Yield the tickets; each comment is a turn, whose speaker is the author's role."""
    roles = {user["id"]: user["role"] for user in export.get("users") or () if user.get("role")}
    tickets = export.get("tickets")
    if tickets is None:
        ticket = export.get("ticket") or export
        tickets = [{**ticket, "comments": ticket.get("comments") or export.get("comments")}]
    for ticket in tickets:
        yield _build_document(ticket, id, roles)


def _build_document(ticket: Any, id: str, roles: Mapping[Any, str]) -> dict[str, Any]:
    channel = (ticket.get("via") or {}).get("channel")
    fields = {
        "id": stringify_number(ticket.get("id")) or id,
        "channel": str(channel) if channel else None,
        "rating": (ticket.get("satisfaction_rating") or {}).get("score"),
        "custom_fields": {
            str(field["id"]): field["value"]
            for field in ticket.get("custom_fields") or ()
            if field.get("value") not in (None, "", [])
        },
        **{key: ticket.get(key) for key in KEPT},
        **{key: stringify_number(ticket.get(key)) for key in KEPT_IDS},
    }
    turns = [_make_turn(comment, ticket, roles) for comment in ticket.get("comments") or ()]
    if not any(turn.get("text") for turn in turns):  # the description repeats the first comment
        turns = [make_turn(ticket.get("description"), END_USER)]
    return make_document(fields, turns)


def _make_turn(comment: Any, ticket: Any, roles: Mapping[Any, str]) -> Turn:
    author = comment.get("author_id")
    usual_role = END_USER if author and author == ticket.get("requester_id") else AGENT
    return make_turn(
        comment.get("plain_body") or comment.get("body") or comment.get("html_body"),
        roles.get(author, usual_role),
        author_id=stringify_number(author),
        **pick(comment, created_at="created_at", public="public"),
    )


ZENDESK = json_format(
    "zendesk",
    build,
    *(
        {f"{parent}id", f"{parent}requester_id", f"{parent}{field}"}
        for parent in ("", "ticket.", "tickets.")
        for field in OWN_FIELDS
    ),
)
