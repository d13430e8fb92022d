"""The float32 graph of an encoder and its head, exported by what optimum-onnx knows of it.

optimum-onnx has a configuration for each architecture: example inputs, and what must be replaced
in the model so that it can be traced. Inputs and output are ours, the same for all of them.
"""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from optimum.exporters.onnx import TextEncoderOnnxConfig, convert
from optimum.exporters.tasks import TasksManager

OPSET = 17
AXES = {0: "batch", 1: "tokens"}
TASK = "feature-extraction"
HIDDEN = "last_hidden_state"


class TokenVectors(torch.nn.Module):
    """The model to export: token ids and mask to token vectors, float32.

    ``[batch, tokens, dimension]``. These are the last hidden state, or its products with `head`
    ``[dimension, hidden]``, which a trained folder may have: it commutes with the mean.
    """

    def __init__(self, encoder: torch.nn.Module, head: torch.Tensor | None = None) -> None:
        super().__init__()
        self.encoder = encoder
        self.config = encoder.config
        self.register_buffer("head", head)  # in the state, and so in the fingerprint
        self.dimension = int(encoder.config.hidden_size if head is None else len(head))

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """Return the token vectors."""
        hidden: torch.Tensor = self.encoder(input_ids=input_ids, attention_mask=attention_mask)[
            HIDDEN
        ]
        return hidden if self.head is None else hidden @ self.head.T


def write(model: TokenVectors, path: Path) -> None:
    """Write the float32 graph with dynamic batch and length.

    Raises SystemExit for an architecture that optimum-onnx does not know as a text encoder.
    """
    convert.export(model, _config(model), path, opset=OPSET)


def supported_types() -> list[str]:
    """Return the ``model_type`` of all text encoders that optimum-onnx can export."""
    return sorted(
        name
        for name in TasksManager.get_supported_model_type_for_task(TASK, "onnx")
        if issubclass(_known_config(name), TextEncoderOnnxConfig)
    )


def _known_config(model_type: str) -> Any:
    """Return the class of optimum's configuration of an architecture."""
    tasks = TasksManager.get_supported_tasks_for_model_type(
        model_type, "onnx", library_name="transformers"
    )
    return tasks[TASK].func


def _config(model: TokenVectors) -> Any:
    """Return optimum's configuration of the model's architecture, with our inputs and output.

    Raises:
        SystemExit: If optimum-onnx does not know the architecture as a text encoder.
    """
    model_type, supported = model.config.model_type, supported_types()
    if model_type not in supported:
        raise SystemExit(
            f"optimum-onnx {version('optimum-onnx')} exports no text encoders of type {model_type};"
            f" it exports {', '.join(supported)}"
        )

    class TokenVectorsConfig(_known_config(model_type)):  # type: ignore[misc]
        """Two inputs for all architectures: further ones, such as segments, keep their defaults."""

        inputs = dict.fromkeys(("input_ids", "attention_mask"), AXES)
        outputs = {"token_vectors": AXES}  # noqa: RUF012
        torch_to_onnx_output_map = {HIDDEN: "token_vectors"}  # noqa: RUF012

        def patch_model_for_export(self, model: TokenVectors, **options: Any) -> Any:
            """Return the context in which the encoder inside `model` can be traced."""
            return super().patch_model_for_export(model.encoder, **options)

    return TokenVectorsConfig(model.config, task=TASK)
