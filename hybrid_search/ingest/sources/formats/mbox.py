"""Mbox: a mailbox in one file; each mail is a document.

https://www.rfc-editor.org/rfc/rfc4155
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from typing import Any, BinaryIO

from hybrid_search.ingest.sources.formats.base import Format
from hybrid_search.ingest.sources.formats.turns import keep_known

_HEAD = re.compile(rb"From [^\r\n]*\r?\n(?:>?[!-9;-~]+:[ \t]?[^\r\n]*\r?\n)")
_QUOTED_FROM = re.compile(rb"^>(>*From )", re.MULTILINE)


def read(file: BinaryIO, id: str) -> Iterator[dict[str, Any]]:
    """Yield the mails; `thread` is shared by a mail and all its replies."""
    for number, data in enumerate(_split_mails(file), 1):
        mail = message_from_bytes(data, policy=default)
        own_id = _clean_id(mail["message-id"]) or f"{id}-{number}"
        answered = f"{mail['references'] or ''} {mail['in-reply-to'] or ''}".split()
        date = getattr(mail["date"], "datetime", None)
        fields = {
            "id": own_id,
            "subject": _to_text(mail["subject"]),
            "date": date.isoformat() if isinstance(date, datetime) else None,
            "from": _to_text(mail["from"]),
            "to": _to_text(mail["to"]),
            "thread": _clean_id(answered[0]) if answered else own_id,
        }
        yield {**keep_known(fields), "text": _read_body(mail)}


def _split_mails(file: BinaryIO) -> Iterator[bytes]:
    """Yield the mails of a mailbox, one at a time; each starts with a line "From "."""
    lines: list[bytes] = []
    is_blank_before = True
    for line in file:
        if is_blank_before and line.startswith(b"From "):
            if lines:
                yield _QUOTED_FROM.sub(rb"\1", b"".join(lines))
            lines = []
        else:
            lines.append(line)
        is_blank_before = not line.strip()
    if lines:
        yield _QUOTED_FROM.sub(rb"\1", b"".join(lines))


def _read_body(mail: EmailMessage) -> str:
    """Return the plain text of a mail, else its HTML, else ""."""
    body = mail.get_body(preferencelist=("plain", "html"))
    if body is None:
        return ""
    try:
        text = body.get_content()
    except (LookupError, ValueError):  # an unknown character set, or a broken encoding
        payload = body.get_payload(decode=True)
        text = payload.decode("utf-8", "replace") if isinstance(payload, bytes) else ""
    return str(text).replace("\r\n", "\n").strip()


def _to_text(header: object) -> str | None:
    return " ".join(str(header).split()) if header else None


def _clean_id(header: object) -> str:
    return str(header or "").strip().strip("<>")


MBOX = Format("mbox", lambda head, _: bool(_HEAD.match(head)), read)
