"""Lookup of models by name: the shipped one, and those of installed distributions.

A distribution provides a model through an entry point of the group ``hybrid_search.models``. Its
name is the model's name, and its value is a package whose folder is the model folder:

    [project.entry-points."hybrid_search.models"]
    slice-mpnet = "slice_mpnet"

The package is located without importing it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

from hybrid_search.encoder.model_folder import SETTINGS, SHIPPED, read_settings
from hybrid_search.encoder.truncated import truncated_fingerprint
from hybrid_search.errors import ModelError, show_value
from hybrid_search.system import DISTRIBUTION
from hybrid_search.text.name_lists import list_names

GROUP = "hybrid_search.models"


@dataclass(frozen=True, slots=True)
class InstalledModel:
    """A model that can be chosen by name, and the distribution that provides it.

    `package` is the import name of the package that contains the model; `folder` is None if it does
    not exist.
    """

    name: str
    distribution: str
    package: str
    folder: Path | None

    def require_folder(self) -> Path:
        """Return the model folder.

        Raises:
            ModelError: If it is missing, or not a model folder.
        """
        offer = f"distribution {self.distribution} offers the model {self.name!r}"
        remedy = f"install {self.distribution} again, or give a model folder"
        if self.folder is None:
            raise ModelError(f"{offer}, but there is no package {self.package!r}: {remedy}")
        if not (self.folder / SETTINGS).is_file():
            raise ModelError(
                f"{offer}, but {self.folder} is not a model folder: {SETTINGS} is missing. "
                f"{remedy[0].upper()}{remedy[1:]}."
            )
        return self.folder


def find_model(model: str | Path | None) -> Path:
    """Return the folder of a model, given by path or name; None for the shipped model.

    A `Path`, or text with a path separator, is a folder. Other text is the name of an installed
    model, or else a folder in the working directory, so a name means the same model everywhere.

    Raises:
        ModelError: If no model has this name, two distributions provide it, or its folder is
            missing.
    """
    if not model:
        return SHIPPED
    if isinstance(model, Path) or {"/", os.sep} & set(model):
        return Path(model)
    models = list_models()
    offers = [installed for installed in models if installed.name == model]
    if len(offers) > 1:
        distributions = " and by ".join(offer.distribution for offer in offers)
        raise ModelError(
            f"the model {model!r} is offered by {distributions}: uninstall all but one, or give "
            "the folder of the one that you mean"
        )
    if offers:
        return offers[0].require_folder()
    if os.path.isdir(model):  # noqa: PTH112 (a Path raises OSError for a name that is too long)
        return Path(model)
    names = list_names([installed.name for installed in models], model)
    raise ModelError(
        f"there is no model {show_value(model)}, neither installed nor as a folder. Installed: "
        f"{names}. Choose one of these, install the package that offers it, or give the path of a "
        "model folder"
    )


def list_models() -> list[InstalledModel]:
    """Return the installed models: the shipped one first, the others by name."""
    shipped = InstalledModel(SHIPPED.name, DISTRIBUTION, "hybrid_search", SHIPPED)
    offered = [
        InstalledModel(
            point.name,
            point.dist.name if point.dist else "without a name",
            point.value,
            _find_package_folder(point.value),
        )
        for point in entry_points(group=GROUP)
    ]
    return [shipped, *sorted(offered, key=lambda model: (model.name, model.distribution))]


def find_name(fingerprint: str, dimension: int) -> str | None:
    """Return the name of an installed model with this fingerprint, if there is one.

    `dimension` is the dimension of its vectors, which may be truncated.
    """
    for model in list_models():
        with suppress(ModelError):  # a broken model cannot be the wanted one
            original = read_settings(model.require_folder()).fingerprint
            if fingerprint in (original, truncated_fingerprint(original, dimension)):
                return model.name
    return None


def _find_package_folder(package: str) -> Path | None:
    """Return the folder of a package without importing it; its parent packages are imported."""
    try:
        spec = find_spec(package)
    except Exception:  # parent packages may be missing, or fail in any way
        return None
    folders = spec.submodule_search_locations if spec else None
    return Path(next(iter(folders))) if folders else None
