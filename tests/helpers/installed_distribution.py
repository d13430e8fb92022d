"""Distributions that offer a model, installed by hand: nothing is built or downloaded."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from hybrid_search.encoder import SHIPPED
from hybrid_search.encoder.installed_models import GROUP


def install_distribution(site: Path, distribution: str, model: str, package: str) -> None:
    """Write what pip would write of a distribution that offers `model` in `package`."""
    metadata = site / f"{distribution.replace('-', '_')}-0.1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 0.1.0\n"
    )
    (metadata / "entry_points.txt").write_text(f"[{GROUP}]\n{model} = {package}\n")


def install_model_package(site: Path, package: str) -> Path:
    """Write a package with the files of the shipped model; importing it is an error."""
    folder = site.joinpath(*package.split("."))
    shutil.copytree(SHIPPED, folder, copy_function=os.symlink)
    (folder / "__init__.py").write_text("raise RuntimeError('a model is not imported')\n")
    return folder
