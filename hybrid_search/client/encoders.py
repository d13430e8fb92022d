"""The encoders of one client: its model, at the dimension of each index.

A client without a configured model searches each index with the model that wrote it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any

from hybrid_search import encoder
from hybrid_search.backends.types import IndexSpec
from hybrid_search.config import Settings
from hybrid_search.encoder import Encoder, codebook_file, model_folder
from hybrid_search.encoder.installed_models import find_name
from hybrid_search.encoder.truncated import default_dimension
from hybrid_search.ingest.executors import LOCAL, Executor, check_executor
from hybrid_search.search import calibration
from hybrid_search.search.calibration import Calibration
from hybrid_search.text.types import Codebook


class ClientEncoders:
    """A loader of the configured encoder, on first use and once per process."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock, self._exit_stack = Lock(), ExitStack()
        self._executors: dict[tuple[Any, ...], Executor] = {}  # at most one, by its settings
        self._encoders_by_name: dict[str, ClientEncoders] = {}
        self._names: dict[tuple[str, int], str | None] = {}

    @cached_property
    def _folder(self) -> Path:
        return encoder.find_model(self._settings.model)

    @cached_property
    def may_choose(self) -> bool:
        """Whether no model was configured, and models besides the shipped one are installed."""
        return self._settings.model is None and len(encoder.list_models()) > 1

    def for_spec(self, spec: IndexSpec | None) -> ClientEncoders:
        """Return the encoders of the model that wrote an index, if none was configured.

        They are these, if there is no index yet, or its model is the shipped one or not installed.
        """
        if spec is None or not self.may_choose:
            return self
        key = spec.fingerprint, spec.dimension
        if key not in self._names:
            self._names[key] = find_name(*key)
        name = self._names[key]
        if name in (None, encoder.SHIPPED.name):
            return self
        if name not in self._encoders_by_name:
            self._encoders_by_name[name] = ClientEncoders(replace(self._settings, model=name))
        return self._encoders_by_name[name]

    @property
    def full(self) -> Encoder:
        """Return the encoder at the model's full dimension."""
        return encoder.load(self._folder, self._settings.device, self._settings.precision)

    @property
    def default(self) -> Encoder:
        """Return the encoder at the dimension that this client's new indexes have."""
        return encoder.truncate_encoder(self.full, self._settings.dimension)

    def truncated_to(self, spec: IndexSpec | None) -> Encoder:
        """Return the encoder at an index's dimension, if the model supports it."""
        full = self.full
        if spec and spec.dimension in full.info.sizes:
            return encoder.truncate_encoder(full, spec.dimension)
        return self.default

    def for_new_version(self, spec: IndexSpec | None) -> Encoder:
        """Return the encoder at the configured dimension, else at the index's dimension."""
        return self.default if self._settings.dimension else self.truncated_to(spec)

    def acquire_executor(
        self, name: str, workers: int | None, spec: IndexSpec | None
    ) -> AbstractContextManager[Encoder | Executor]:
        """Return the executor that encodes an ingest; cluster workers stay alive until `close`."""
        check_executor(name, workers)
        if name == LOCAL:
            return nullcontext(self.truncated_to(spec))
        from hybrid_search.ingest.executors.ray import RayExecutor

        # read the dimensions from the folder: loading an encoder may need a device we lack
        settings = self._settings
        model = model_folder.read(self._folder)
        size = settings.dimension or default_dimension(model)
        if spec and spec.dimension in model.sizes:
            size = spec.dimension
        return self.keep_executor(
            RayExecutor, self._folder, settings.device, settings.precision, size, workers
        )

    @contextmanager
    def keep_executor(
        self, start: Callable[..., AbstractContextManager[Executor]], *settings: Any
    ) -> Iterator[Executor]:
        """Yield the executor of these settings, started with ``start(*settings)`` if necessary.

        It is kept, so a cluster is joined once for all files of a folder; only one ingest uses it
        at a time. If the block fails, it is closed, and the next call starts a new one.
        """
        with self._lock:
            try:
                if settings not in self._executors:
                    self._close_executor()
                    self._executors[settings] = self._exit_stack.enter_context(start(*settings))
                yield self._executors[settings]
            except BaseException:
                self._close_executor()
                raise

    def _close_executor(self) -> None:
        self._executors.clear()
        self._exit_stack.close()

    def load_codebook(self, dimension: int) -> Codebook:
        """Return the model's codebook, with which stored codes can then be read."""
        return codebook_file.load(self._folder, dimension)

    def load_calibration(self, precision: str, dimension: int, spans_by: str) -> Calibration:
        """Return the model's calibration, see `calibration.load`."""
        return calibration.load(self._folder, precision, dimension, spans_by)

    def close(self) -> None:
        """Stop the cluster workers."""
        self._close_executor()
        for encoders in self._encoders_by_name.values():
            encoders.close()
