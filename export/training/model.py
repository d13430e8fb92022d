"""The model to train: a Hugging Face encoder and, by the recipe, one linear head on it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import AutoModel

from export.training import sentence_folder
from export.training.texts import Cutter, Text

SPARE = 12
"""The padding of a batch is at most one part in this many of the budget.

On a CPU that costs as much as another pass: 170 of 2,048 tokens.
"""

HEAD = "head.safetensors"
"""The head of a folder that ``export.train`` made: one matrix, ``weight`` ``[hidden, hidden]``."""

COPIED = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt")


class SpanEncoder(nn.Module):
    """Token ids to token vectors.

    The head is a matrix without bias, so that it commutes with the mean of a span's tokens. Always
    in eval mode: dropout was of no use in runs this short, and the teacher has none.
    """

    def __init__(self, body: nn.Module, head: Tensor | None = None) -> None:
        super().__init__()
        self.body = body
        self.hidden = int(body.config.hidden_size)
        self.head: nn.Linear | None = None
        if head is not None:
            self.head = nn.Linear(*head.T.shape, bias=False)
            with torch.no_grad():
                self.head.weight.copy_(head)
        self.eval()

    @classmethod
    def load(cls, folder: Path, attention: str | None = None) -> Self:
        """Return the model of a folder of `save`, or any of Hugging Face's.

        `attention` is one of transformers' implementations, by default the one it prefers.
        """
        body = AutoModel.from_pretrained(folder, attn_implementation=attention).float()
        head = load_file(folder / HEAD)["weight"] if (folder / HEAD).is_file() else None
        return cls(body, head)

    def save(self, folder: Path, tokenizer: Path) -> None:
        """Write weights, head and configuration, each file replaced at once.

        The tokenizer's files are copied from the folder `tokenizer`. transformers and
        sentence-transformers load the folder as it is.
        """
        folder.mkdir(parents=True, exist_ok=True)
        scratch = folder / ".new"
        shutil.rmtree(scratch, ignore_errors=True)
        self.body.save_pretrained(scratch)
        head = None if self.head is None else self.head.weight.detach().cpu().contiguous()
        if head is not None:
            save_file({"weight": head}, scratch / HEAD)
        for name in COPIED:
            if (tokenizer / name).is_file():
                shutil.copy(tokenizer / name, scratch / name)
        sentence_folder.write(scratch, self.hidden, head)
        for path in [path for path in scratch.rglob("*") if path.is_file()]:
            new_path = folder / path.relative_to(scratch)
            new_path.parent.mkdir(exist_ok=True)
            os.replace(path, new_path)  # noqa: PTH105
        shutil.rmtree(scratch)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Return token vectors ``[batch, tokens, hidden]``, special tokens and padding included."""
        vectors: Tensor = self.body(input_ids=ids, attention_mask=mask).last_hidden_state
        return vectors if self.head is None else self.head(vectors)

    def layers(self) -> Sequence[nn.Module]:
        """The encoder's layers, lowest first."""
        return next(
            module
            for module in self.body.modules()
            if isinstance(module, nn.ModuleList) and len(module) > 0
        )

    def train_only(self, layers: int | str, head: bool = True) -> None:
        """Freeze all but the top `layers`, and the head too if `head` is False.

        With "all" layers nothing but the head can be frozen: the embeddings are trained too.

        Raises:
            SystemExit: If there are not so many layers.
        """
        self.requires_grad_(layers == "all")
        if layers != "all":
            count = int(layers)
            if not 0 <= count <= len(self.layers()):
                raise SystemExit(f"layers is {count}: the encoder has {len(self.layers())}")
            for layer in self.layers()[len(self.layers()) - count :]:
                layer.requires_grad_(True)
        if self.head is not None:
            self.head.requires_grad_(head)

    def trainable_parameters(self) -> dict[str, nn.Parameter]:
        """Return the parameters that are not frozen, by name."""
        return {name: value for name, value in self.named_parameters() if value.requires_grad}


@dataclass(frozen=True, slots=True, eq=False)
class EncodedTexts:
    """Token vectors of some texts end to end, special tokens left out.

    `flat` is ``[tokens, dimension]``; text i begins at row ``starts[i]``.
    """

    flat: Tensor
    starts: list[int]
    counts: list[int]

    def means(self, spans: Sequence[tuple[int, int, int]]) -> Tensor:
        """Return the mean vector of each span, ``[spans, dimension]``.

        A span is (text, first token, token after the last).
        """
        rows: list[int] = []
        offsets: list[int] = []
        for text, start, end in spans:
            offsets.append(len(rows))
            rows += range(self.starts[text] + start, self.starts[text] + end)
        index = torch.tensor(rows, dtype=torch.int64, device=self.flat.device)
        return nn.functional.embedding_bag(
            index,
            self.flat,
            torch.tensor(offsets, dtype=torch.int64, device=self.flat.device),
            mode="mean",
        )

    def text_means(self, texts: Sequence[int]) -> Tensor:
        """Return the mean vector of whole texts, ``[texts, dimension]``."""
        return self.means([(text, 0, self.counts[text]) for text in texts])

    def pad_texts(self, texts: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Return padded token vectors and the mask of real tokens.

        ``[texts, tokens, dimension]`` and bool ``[texts, tokens]``.
        """
        longest = max(self.counts[text] for text in texts)
        device = self.flat.device
        steps = torch.arange(longest, device=device)
        counts = torch.tensor([self.counts[text] for text in texts], device=device)
        mask = steps < counts[:, None]
        rows = torch.tensor([self.starts[text] for text in texts], device=device)[:, None] + steps
        return self.flat[torch.where(mask, rows, 0)] * mask[..., None], mask


def read(
    model: SpanEncoder, cutter: Cutter, texts: Sequence[Text], budget: int, bfloat16: bool = False
) -> EncodedTexts:
    """Return all `texts` read by `model`, those of like length together.

    At most `budget` padded tokens at a time.
    """
    starts, parts, rows = [0] * len(texts), [], 0
    edge = len(cutter.before)
    with autocast_bfloat16(model, bfloat16):
        for chunk in batches([len(text.ids) for text in texts], budget):
            hidden, mask = run(model, cutter, [texts[i].ids for i in chunk])
            plain = mask.bool()
            plain[:, :edge] = False
            for row, i in enumerate(chunk):
                plain[row, edge + len(texts[i].ids) :] = False
                starts[i] = rows
                rows += len(texts[i].ids)
            parts.append(hidden[plain])
    return EncodedTexts(torch.cat(parts), starts, [len(text.ids) for text in texts])


@contextmanager
def autocast_bfloat16(model: SpanEncoder, bfloat16: bool) -> Iterator[None]:
    """Compute products in bfloat16, if `bfloat16` is set.

    One context for all batches of a step: weights are then cast once.
    """
    with torch.autocast(next(model.parameters()).device.type, torch.bfloat16, enabled=bfloat16):
        yield


def run(model: SpanEncoder, cutter: Cutter, rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """Return token vectors and mask of one padded batch, special tokens included.

    float32 ``[rows, tokens, hidden]`` and int64 ``[rows, tokens]``.
    """
    longest = max(map(len, rows)) + len(cutter.before) + len(cutter.after)
    ids = torch.full((len(rows), longest), cutter.padding, dtype=torch.int64)
    mask = torch.zeros_like(ids)
    for number, row in enumerate(rows):
        framed = [*cutter.before, *row, *cutter.after]
        ids[number, : len(framed)] = torch.tensor(framed)
        mask[number, : len(framed)] = 1
    device = next(model.parameters()).device
    ids, mask = ids.to(device), mask.to(device)
    return model(ids, mask).float(), mask


def batches(lengths: Sequence[int], budget: int, edges: int = 2) -> Iterator[list[int]]:
    """Yield the numbers of texts of like length, as batches within `budget` padded tokens.

    A longer text is a batch of its own, and padding is limited by `SPARE`. `edges` special tokens
    are added to each text.
    """
    batch: list[int] = []
    token_count = 0
    for i in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        padded, token_count = (
            (len(batch) + 1) * (lengths[i] + edges),
            token_count + lengths[i] + edges,
        )
        if batch and (padded > budget or padded - token_count > budget // SPARE):
            yield batch
            batch, token_count = [], lengths[i] + edges
        batch.append(i)
    if batch:
        yield batch
