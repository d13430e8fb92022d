"""Draw the lowest layers of a trained model back towards those of the base it was trained from.

``python -m export.interpolate --model MODEL --base DIR --share 0.6 --layers 3 --out DIR`` writes a
folder of weights for `export.to_onnx`. Training on calls costs what the base knows of rare words,
and most of that lies in the embeddings and the first layers, while what was learned lies above
them. So the mean of both ends (WiSE-FT, arXiv:2109.01903) is taken there alone.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch

from export.restore import restore
from export.training.model import SpanEncoder


def interpolate(model: SpanEncoder, base: SpanEncoder, share: float, layers: int) -> None:
    """Move weights of `model` towards those of `base`, in place.

    The embeddings and the first layer move by `share`, from 0 to 1, each further layer by
    ``share / layers`` less.

    Raises:
        SystemExit: If the two have weights of other names or shapes.
    """
    if describe_weights(model) != describe_weights(base):
        raise SystemExit("the two models have other weights: name the base of the trained model")
    shares: dict[int, float] = {}
    for number, layer in enumerate(model.layers()):
        own_share = share * max(0.0, 1 - number / layers)
        shares |= dict.fromkeys(map(id, layer.parameters()), own_share)
    base_weights = dict(base.body.named_parameters())
    with torch.no_grad():
        for name, weight in model.body.named_parameters():
            if name in base_weights:  # no pooler need be there
                weight.lerp_(base_weights[name], shares.get(id(weight), share))


def describe_weights(model: SpanEncoder) -> dict[str, torch.Size]:
    """Return the shape of each weight of the encoder, without a pooler's."""
    weights = model.body.named_parameters()
    return {name: weight.shape for name, weight in weights if not name.startswith("pooler.")}


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", required=True, type=Path, help="a model folder")
    parser.add_argument("--base", required=True, type=Path, help="the weights it began with")
    parser.add_argument("--share", type=float, default=0.6, help="of the base, in the first layer")
    parser.add_argument("--layers", type=int, default=3, help="how many layers have a share of it")
    parser.add_argument("--out", required=True, type=Path, help="the folder to write")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as scratch:
        restore(options.model, Path(scratch))
        model = SpanEncoder.load(Path(scratch))
        interpolate(model, SpanEncoder.load(options.base), options.share, options.layers)
        model.save(options.out, Path(scratch))


if __name__ == "__main__":
    main()
