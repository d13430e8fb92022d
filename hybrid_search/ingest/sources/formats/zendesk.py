"""Zendesk: tickets with their comments, from an export or from the API.

https://developer.zendesk.com/api-reference/ticketing/tickets/tickets/
https://developer.zendesk.com/api-reference/ticketing/tickets/ticket_comments/
https://support.zendesk.com/hc/en-us/articles/4408886165402 (JSON export)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from hybrid_search.ingest.sources.formats.base import Format
from hybrid_search.ingest.sources.formats.json_records import Record, find_paths, read_records
from hybrid_search.ingest.sources.formats.turns import Turn, drop_empty, keep_known, make_turn

OWN_FIELDS = {"via", "custom_fields", "raw_subject", "satisfaction_rating", "brand_id"}
"""Fields of a ticket that are specific to Zendesk."""

END_USER, AGENT = "end-user", "agent"
"""Roles of users, as Zendesk names them."""


class _User(Record):
    id: str
    name: str | None = None
    role: str | None = None


class _Comment(Record):
    author_id: str | None = None
    body: str | None = None
    plain_body: str | None = None
    html_body: str | None = None
    public: bool | None = None
    created_at: str | None = None


class _Via(Record):
    channel: str | int | None = None


class _Rating(Record):
    score: str | None = None


class _CustomField(Record):
    id: str
    value: Any = None


class _Ticket(Record):
    id: str
    subject: str | None = None
    description: str | None = None
    status: str | None = None
    priority: str | None = None
    type: str | None = None
    tags: tuple[str, ...] = ()
    created_at: str | None = None
    updated_at: str | None = None
    requester_id: str | None = None
    assignee_id: str | None = None
    organization_id: str | None = None
    group_id: str | None = None
    via: _Via | None = None
    satisfaction_rating: _Rating | None = None
    custom_fields: list[_CustomField] | None = None
    comments: list[_Comment] | None = None


class _Export(_Ticket):
    """A ticket, or an API response with one or several tickets."""

    id: str = ""
    ticket: _Ticket | None = None
    tickets: list[_Ticket] | None = None
    users: list[_User] | None = None
    comments: list[_Comment] | None = None


def recognise(head: bytes, name: str) -> bool:  # noqa: ARG001
    """Return whether a file has Zendesk tickets."""
    paths = find_paths(head)
    return any(
        {f"{parent}id", f"{parent}requester_id"} <= paths
        and any(f"{parent}{field}" in paths for field in OWN_FIELDS)
        for parent in ("", "ticket.", "tickets.")
    )


def read(file: BinaryIO, id: str) -> Iterator[dict[str, Any]]:
    """Yield the tickets; each comment is a turn, whose speaker is the author's role.

    Without users from the API, the requester is an end user and all others are agents.
    """
    for own_id, export in read_records(file, _Export, id):
        roles = {user.id: user.role for user in export.users or () if user.role}
        tickets = export.tickets
        if tickets is None:
            ticket = export.ticket or export
            tickets = [ticket.model_copy(update={"comments": ticket.comments or export.comments})]
        for ticket in tickets:
            yield _make_document(ticket, own_id, roles)


def _make_document(ticket: _Ticket, own_id: str, roles: Mapping[str, str]) -> dict[str, Any]:
    custom_fields = {
        field.id: field.value for field in ticket.custom_fields or () if field.value not in ("", [])
    }
    fields = {
        "id": ticket.id or own_id,
        "channel": str(ticket.via.channel) if ticket.via and ticket.via.channel else None,
        "rating": ticket.satisfaction_rating and ticket.satisfaction_rating.score,
        "custom_fields": keep_known(custom_fields),
        "tags": list(ticket.tags),
        **ticket.model_dump(
            include={
                *("subject", "status", "priority", "type", "created_at", "updated_at"),
                *("requester_id", "assignee_id", "organization_id", "group_id"),
            }
        ),
    }
    turns = drop_empty(_make_turn(comment, ticket, roles) for comment in ticket.comments or ())
    if not turns:  # the description repeats the first comment
        turns = drop_empty([make_turn(ticket.description or "", END_USER)])
    return {**keep_known(fields), "turns": turns}


def _make_turn(comment: _Comment, ticket: _Ticket, roles: Mapping[str, str]) -> Turn:
    author = comment.author_id
    usual_role = END_USER if author and author == ticket.requester_id else AGENT
    return make_turn(
        comment.plain_body or comment.body or comment.html_body or "",
        roles.get(author or "", usual_role),
        created_at=comment.created_at,
        public=comment.public,
        author_id=author,
    )


ZENDESK = Format("zendesk", recognise, read)
