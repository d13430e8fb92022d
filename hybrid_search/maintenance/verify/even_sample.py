"""An evenly spread sample of a stream whose length nobody knows, in bounded memory and the same
each time.
"""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class EvenSample(Generic[T]):
    """Holds every n-th item, fewer than twice `count` of them: n doubles whenever there are more."""

    def __init__(self, count: int) -> None:
        self._count, self._step, self._item_count = count, 1, 0
        self._items: list[T] = []

    def add(self, item: T) -> None:
        """Take in the next item of the stream."""
        if self._count and self._item_count % self._step == 0:
            self._items.append(item)
        self._item_count += 1
        if self._count and len(self._items) == 2 * self._count:
            self._items, self._step = self._items[::2], 2 * self._step

    def select(self) -> list[T]:
        """`count` items, or all where there were fewer, in their order."""
        size = min(self._count, len(self._items))
        return [self._items[number * len(self._items) // size] for number in range(size)]
