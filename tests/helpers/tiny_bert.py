"""A BERT with seeded random weights, as a Hugging Face folder; for tests with torch."""

from __future__ import annotations

import shutil
from pathlib import Path

from hybrid_search.encoder import SHIPPED


def save_weights(folder: Path, vocabulary: int = 30522, **shape: int) -> None:
    """Save a BERT of two layers and 32 dimensions, unless `shape` says otherwise."""
    import torch
    import transformers

    torch.manual_seed(7)
    small = {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 64,
        "max_position_embeddings": 128,
    }
    config = transformers.BertConfig(vocab_size=vocabulary, **small | shape)
    transformers.BertModel(config).save_pretrained(folder)


def save_bert(folder: Path) -> Path:
    """Save such a BERT with the shipped tokenizer, whose vocabulary has 30,522 entries."""
    shutil.copy(SHIPPED / "tokenizer.json", folder)
    save_weights(folder)
    return folder
