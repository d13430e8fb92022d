"""Convert a model folder that has one graph, ``model.onnx``: ``python -m export.convert FOLDER``.

Its weights stay as they are, and so does its fingerprint. Files of weights that are int8 already
stay, too. To be removed once all folders are converted.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, numpy_helper
from onnx.external_data_helper import ExternalDataInfo, uses_external_data

from export import card, check
from export.codes import SUFFIXES
from export.package import LARGEST
from export.ready_graphs import write_coded, write_int8
from export.to_onnx import file_digest, find_graphs
from export.weights import Place, Places
from hybrid_search.encoder.model_folder import SCHEMA, SETTINGS, TOKENIZER

GRAPH = "model.onnx"


def convert(folder: Path) -> None:
    """Write the graphs of a folder, its settings and what its card says of them."""
    settings = json.loads((folder / SETTINGS).read_text())
    places = read_places(folder / GRAPH)
    with tempfile.TemporaryDirectory() as scratch:
        float32 = _copy_as_float32(folder, Path(scratch), settings)
        reference = check.product_side(float32, "float32")
    model = onnx.load(folder / GRAPH)
    if places:
        _widen_halves(model, most_axes=1)
        write_coded(model, places, folder)
    else:
        _widen_halves(model, most_axes=2)
        write_int8(model, folder, LARGEST)
    (folder / GRAPH).unlink()
    others = {name: digest for name, digest in settings["sha256"].items() if name != GRAPH}
    digests = {path.name: file_digest(path) for path in find_graphs(folder)}
    del settings["precision"]
    settings |= {"schema": SCHEMA, "sha256": {**digests, **others}}
    _write(settings, folder)
    settings["parity"] = check.measure(reference, folder)
    _write(settings, folder)
    write_card(folder, settings)


def read_places(graph: Path) -> Places:
    """Return where the codes of a graph lie, if it has files of weights."""
    model = onnx.load(graph, load_external_data=False)
    infos = {
        tensor.name: ExternalDataInfo(tensor)
        for tensor in model.graph.initializer
        if uses_external_data(tensor) and tensor.name.endswith(SUFFIXES)
    }
    return {name: Place(info.location, info.offset, info.length) for name, info in infos.items()}


def _copy_as_float32(folder: Path, out: Path, settings: dict[str, Any]) -> Path:
    """Copy a folder to `out` as one of this version that has float32 alone."""
    shutil.copy(folder / TOKENIZER, out)
    for path in folder.glob("*.data"):
        shutil.copy(path, out)
    shutil.copy(folder / GRAPH, out / "float32.onnx")
    digests = {path.name: file_digest(path) for path in out.iterdir()}
    _write({**settings, "schema": SCHEMA, "sha256": digests}, out)
    return out


def _widen_halves(model: ModelProto, most_axes: int) -> None:
    """Make float32 of the float16 weights with so few axes, and drop the casts behind them."""
    tensors = {tensor.name: tensor for tensor in model.graph.initializer}
    for node in [*model.graph.node]:
        weight = tensors.get(node.input[0]) if node.op_type == "Cast" else None
        if weight and weight.name.endswith("/float16") and len(weight.dims) <= most_axes:
            values = numpy_helper.to_array(weight).astype(np.float32)
            weight.CopyFrom(numpy_helper.from_array(values, node.output[0]))
            model.graph.node.remove(node)


def _write(settings: dict[str, Any], folder: Path) -> None:
    (folder / SETTINGS).write_text(json.dumps(settings, indent=2) + "\n")


def write_card(folder: Path, settings: dict[str, Any]) -> None:
    """Write what the card of a folder, if it has one, says of its graphs."""
    path = folder / card.FILE
    if path.is_file():
        row = f"| graphs | {card.describe_graphs(settings)} |"
        path.write_text(re.sub(r"^\| graph \|.*$", row, path.read_text(), flags=re.MULTILINE))
        card.replace_section(folder, card.PRECISIONS, card.describe_precisions(settings["parity"]))


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    convert(parser.parse_args().folder)


if __name__ == "__main__":
    main()
