"""Prefetch: the same items in the same order, never far ahead, and an end when nobody reads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid_search.ingest.prefetch import prefetch


class Source:
    """Numbers from 0; counts them, and notes its thread and whether it was closed."""

    def __init__(self, fails_at: int | None = None) -> None:
        self.produced = 0
        self.closed = threading.Event()
        self.thread: threading.Thread | None = None
        self._fails_at = fails_at

    def items(self) -> Iterator[int]:
        self.thread = threading.current_thread()
        try:
            while True:
                if self.produced == self._fails_at:
                    raise OSError("the disk is gone")
                self.produced += 1
                yield self.produced - 1
        finally:
            self.closed.set()


def wait_until(condition: Callable[[], bool]) -> bool:
    """Return whether `condition` becomes true within ten seconds."""
    end = time.monotonic() + 10
    while not condition() and time.monotonic() < end:
        time.sleep(0.005)
    return condition()


@given(st.lists(st.integers() | st.none(), max_size=30), st.integers(1, 5))
@settings(deadline=None, max_examples=50)
def test_all_items_come_in_their_order_none_included(items: list[int | None], ahead: int) -> None:
    assert list(prefetch(iter(items), ahead)) == items


def test_it_runs_ahead_by_so_many_items_and_no_more() -> None:
    source = Source()
    with closing(prefetch(source.items(), 3)) as items:
        assert [next(items), next(items)] == [0, 1]
        # Two are taken, three wait in the queue, and one is made and finds it full.
        assert wait_until(lambda: source.produced == 2 + 3 + 1)
        time.sleep(0.3)
        assert source.produced == 6


def test_an_error_crosses_over_behind_the_items_before_it() -> None:
    items: list[int] = []
    with pytest.raises(OSError, match="the disk is gone") as error:
        items.extend(prefetch(Source(fails_at=2).items(), 5))
    assert [entry.name for entry in error.traceback][-1] == "items"
    assert items == [0, 1]


def test_closing_stops_the_thread_and_closes_the_source() -> None:
    source = Source()
    with closing(prefetch(source.items(), 1)) as items:
        next(items)
    assert source.closed.is_set()
    assert source.thread is not None
    assert not source.thread.is_alive()


def test_an_error_of_the_reader_stops_the_thread() -> None:
    source = Source()

    def read() -> None:
        for _ in prefetch(source.items(), 1):
            raise RuntimeError("the reader has had enough")

    with pytest.raises(RuntimeError):
        read()
    assert wait_until(source.closed.is_set)


def test_two_stages_one_behind_the_other_stop_together() -> None:
    first, second = Source(), Source()

    def zip_sources() -> Iterator[tuple[int, int]]:
        yield from zip(prefetch(first.items(), 2), second.items(), strict=True)

    with closing(prefetch(zip_sources(), 2)) as items:
        assert [next(items), next(items)] == [(0, 0), (1, 1)]
    assert wait_until(first.closed.is_set)
    assert wait_until(second.closed.is_set)
