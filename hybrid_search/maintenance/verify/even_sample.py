"""Take an even sample of a stream of unknown length, in bounded memory, the same at every run."""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class EvenSample(Generic[T]):
    """A sample that keeps every n-th item, and doubles n whenever it has twice `count` items."""

    def __init__(self, count: int) -> None:
        self._count, self._step, self._item_count = count, 1, 0
        self._items: list[T] = []

    def add(self, item: T) -> None:
        """Take the next item of the stream into account."""
        if self._count and self._item_count % self._step == 0:
            self._items.append(item)
        self._item_count += 1
        if self._count and len(self._items) == 2 * self._count:
            self._items, self._step = self._items[::2], 2 * self._step

    def select(self) -> list[T]:
        """Return `count` items in their order, or all if there were fewer."""
        size = min(self._count, len(self._items))
        return [self._items[number * len(self._items) // size] for number in range(size)]
