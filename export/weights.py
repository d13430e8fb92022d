"""Files of weights beside the graphs, none too large for a Git repository.

ONNX calls them external data: a graph names for each weight a file in its own folder, a position
and a length (https://onnx.ai/onnx/repo-docs/ExternalData.html). ONNX Runtime maps them into memory.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from onnx import ModelProto, TensorProto, numpy_helper
from onnx.external_data_helper import set_external_data

LEAST = 1024
"""Bytes of the smallest weight that is moved. ONNX Runtime computes shapes from smaller ones."""

ALIGNMENT = 64
"""Bytes of which the position of a weight is a multiple, as instructions on vectors like it."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a weight lies: `length` bytes at `offset` of the file `location`."""

    location: str
    offset: int
    length: int


Places = Mapping[str, Place]
"""The places of weights by their names."""


def write(model: ModelProto, names: Collection[str], folder: Path, limit: int) -> Places:
    """Write the weights of these names into files of at most `limit` bytes.

    Returns:
        The places of those that were written.

    Raises:
        SystemExit: If a single weight is larger than `limit`.
    """
    places: dict[str, Place] = {}
    number, size = 1, 0
    for tensor in model.graph.initializer:
        data = _read_data(tensor)
        if tensor.name not in names or len(data) < LEAST:
            continue
        if len(data) > limit:
            raise SystemExit(
                f"the weight {tensor.name} has {len(data)} bytes, and a file may have {limit}:"
                " allow larger files, or leave out --precision float32"
            )
        size += -size % ALIGNMENT
        if size + len(data) > limit:
            number, size = number + 1, 0
        place = Place(_file_name(number), size, len(data))
        with (folder / place.location).open("ab") as file:
            file.truncate(size)  # fills up with zeros
            file.write(data)
        places[tensor.name] = place
        size += len(data)
    return places


def link(model: ModelProto, places: Places) -> None:
    """Put into a graph the places of its weights instead of the weights."""
    for tensor in model.graph.initializer:
        if tensor.name in places:
            tensor.raw_data = b""  # which the function wants to see
            set_external_data(tensor, **asdict(places[tensor.name]))
            tensor.ClearField("raw_data")


def _file_name(number: int) -> str:
    return "weights.data" if number == 1 else f"weights-{number}.data"


def _read_data(tensor: TensorProto) -> bytes:
    """Return the bytes of a weight, as which it is stored from now on."""
    if not tensor.HasField("raw_data"):
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor), tensor.name))
    return bytes(tensor.raw_data)
