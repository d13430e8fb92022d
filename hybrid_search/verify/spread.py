"""An evenly spread sample of a stream whose length nobody knows, in bounded memory and the same each time."""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class Spread(Generic[T]):
    """Holds every n-th item, fewer than twice `count` of them: n doubles whenever there are more."""

    def __init__(self, count: int) -> None:
        self._count, self._every, self._met = count, 1, 0
        self._held: list[T] = []

    def add(self, item: T) -> None:
        """Take in the next item of the stream."""
        if self._count and self._met % self._every == 0:
            self._held.append(item)
        self._met += 1
        if self._count and len(self._held) == 2 * self._count:
            self._held, self._every = self._held[::2], 2 * self._every

    def chosen(self) -> list[T]:
        """`count` items, or all where there were fewer, in their order."""
        wanted = min(self._count, len(self._held))
        return [self._held[number * len(self._held) // wanted] for number in range(wanted)]
