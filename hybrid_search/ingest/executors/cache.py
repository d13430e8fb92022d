"""A cache that keeps the workers of the last ingest for the next one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from hybrid_search.ingest.executors.base import Executor


@dataclass(slots=True)
class ExecutorCache:
    """A cache of one started executor, so a cluster is joined once for all files of a folder.

    Only one ingest uses it at a time.
    """

    lock: Lock = field(default_factory=Lock)
    executors: dict[tuple[Any, ...], Executor] = field(default_factory=dict)
    """The executor, keyed by the settings it was started with; at most one."""
    exit_stack: ExitStack = field(default_factory=ExitStack)

    @contextmanager
    def acquire(
        self, start: Callable[..., AbstractContextManager[Executor]], *settings: Any
    ) -> Iterator[Executor]:
        """Yield the executor of these settings, started with ``start(*settings)`` if necessary.

        If the block fails, the executor is closed, and the next call starts a new one.
        """
        with self.lock:
            try:
                if settings not in self.executors:
                    self.close()
                    self.executors[settings] = self.exit_stack.enter_context(start(*settings))
                yield self.executors[settings]
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        """Close the executor, if there is one."""
        self.executors.clear()
        self.exit_stack.close()
