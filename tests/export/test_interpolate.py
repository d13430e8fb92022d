"""The lowest layers of a trained model, drawn back to its base."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.export

torch = pytest.importorskip("torch", reason="the extra [export] is not installed: make test-export")

from transformers import BertConfig, BertModel  # noqa: E402 (after torch)

from export.interpolate import interpolate  # noqa: E402
from export.training.model import SpanEncoder  # noqa: E402


def make_model(value: float, layers: int = 4) -> SpanEncoder:
    """A model all of whose weights are one number."""
    config = BertConfig(
        hidden_size=8,
        num_hidden_layers=layers,
        num_attention_heads=2,
        intermediate_size=16,
        vocab_size=20,
    )
    body = BertModel(config, add_pooling_layer=False)
    with torch.no_grad():
        for weight in body.parameters():
            weight.fill_(value)
    return SpanEncoder(body, torch.full((8, 8), value))


def test_the_share_of_the_base_falls_from_layer_to_layer() -> None:
    model = make_model(0.0)
    interpolate(model, make_model(1.0), 0.6, 3)
    values = {
        name: round(float(weight.detach().mean()), 4)
        for name, weight in model.body.named_parameters()
    }
    parts = ["embeddings.", *(f"layer.{number}." for number in range(4))]
    of_parts = [{value for name, value in values.items() if part in name} for part in parts]
    assert of_parts == [{0.6}, {0.6}, {0.4}, {0.2}, {0.0}]
    assert model.head is not None and not model.head.weight.any()  # the head is the trained one


def test_a_base_of_other_weights_is_refused() -> None:
    with pytest.raises(SystemExit, match="have other weights"):
        interpolate(make_model(0.0), make_model(1.0, layers=3), 0.6, 3)
