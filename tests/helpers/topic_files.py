"""Files of topics with a mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from hybrid_search import Topics
from hybrid_search.errors import UsageError


def load_and_fail(path: Path) -> str:
    """Return why a file of topics is refused: one line that begins with its path."""
    with pytest.raises(UsageError) as caught:
        Topics.load(path)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert "\n" not in message
    return message
