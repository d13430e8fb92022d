"""The classifier of PiC's section 5.1 and appendix A, by scikit-learn's MLPClassifier.

Two phrases' vectors side by side, 256 ReLU, one sigmoid. Adam at .0001 in batches of 200, at most
100 epochs, stopped when the accuracy on dev pairs has not grown for 10; the epoch with the best one
counts. MLPClassifier stops by a random part of its training pairs, so it is trained an epoch at a
time here, and without its penalty on weights.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.libraries import import_library
from hybrid_search.text.spans import Index
from hybrid_search.text.types import Floats

HIDDEN = 256
RATE = 1e-4
BATCH = 200
EPOCHS = 100
PATIENCE = 10
SEED = 11


@dataclass(frozen=True, slots=True)
class Classifier:
    """A fitted classifier, and the number of `epochs` it took."""

    model: Any
    epochs: int

    def predict(self, features: Floats) -> NDArray[np.bool_]:
        """Tell whether the phrases mean the same, bool ``[pairs]``."""
        return np.asarray(self.model.predict(_scale(features)), dtype=bool)


def fit(features: Floats, labels: NDArray[np.bool_], train: Index, dev: Index) -> Classifier:
    """Return a classifier trained on the pairs `train` of `features`, stopped by `dev`.

    `features` are float32 ``[pairs, 2 * dimension]``. Raises SystemExit without scikit-learn.
    """
    network = import_library("sklearn.neural_network", "dev")
    order = np.random.RandomState(SEED)  # by a number, MLPClassifier would shuffle all epochs alike
    model = network.MLPClassifier(
        (HIDDEN,),
        batch_size=min(BATCH, len(train)),
        learning_rate_init=RATE,
        alpha=0.0,
        random_state=order,
    )
    scaled = _scale(features)
    best, best_classifier = -1.0, Classifier(model, 0)
    for epoch in range(1, EPOCHS + 1):
        model.partial_fit(scaled[train], labels[train], classes=[False, True])
        accuracy = float((model.predict(scaled[dev]) == labels[dev]).mean())
        if accuracy > best:
            best, best_classifier = accuracy, Classifier(copy.deepcopy(model), epoch)
        if epoch - best_classifier.epochs >= PATIENCE:
            break
    return best_classifier


def _scale(features: Floats) -> Floats:
    """Return the features scaled to numbers of about 1.

    Those of unit vectors are so small that the paper's rate, which is for an encoder's raw numbers,
    hardly changes anything.
    """
    scaled: Floats = features * np.float32(np.sqrt(features.shape[1] / 2))
    return scaled
