"""Make a distribution of a model folder, to be installed by pip: ``python -m export.package``.

    python -m export.package --model FOLDER --out models/NAME

writes a project of its own: ``pyproject.toml``, the model card, the licence, and a package whose
folder is the model folder. Its entry point gives the model a name that hybrid_search knows where
it is installed (`hybrid_search.encoder.installed_models`). ``pip wheel models/NAME`` builds it. It
depends on nothing, and this command needs no torch.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from export import card
from hybrid_search.encoder import model_folder
from hybrid_search.encoder.installed_models import GROUP
from hybrid_search.errors import HybridSearchError

MEGABYTE = 10**6
LARGEST = 95 * MEGABYTE
"""Bytes of a file at most: hosts of Git repositories refuse files of 100 MB."""

LICENSE = "LICENSE"
OWN_LICENSE, OWN_LICENSE_NAME = Path(__file__).parents[1] / LICENSE, "Apache-2.0"

NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")

PROJECT = """\
[build-system]
requires = ["hatchling>=1.24"]
build-backend = "hatchling.build"

[project]
name = {name}
version = {version}
description = {description}
readme = "README.md"
license = {license}
license-files = ["LICENSE"]
requires-python = ">=3.11"

[project.entry-points.{group}]
{name} = {package}

[tool.hatch.build.targets.wheel]
packages = [{package}]
"""
"""The ``pyproject.toml``. Its values are filled in as JSON strings, which are TOML as well."""


def write_project(
    model: Path, project: Path, name: str | None = None, version: str = "0.1.0"
) -> None:
    """Write the project that packs a model folder.

    A model folder that is incomplete or damaged is a ModelError.

    Args:
        model: The model folder.
        project: The folder to write: a new one, or an empty one.
        name: What the model and its distribution are called (default: as ``encoder.json`` says).
        version: The version of the distribution.

    Raises:
        SystemExit: If no distribution can have the name, a file is too large, the card or the
            licence is missing, or `project` is not empty.
    """
    artifact = model_folder.read(model)
    name = name or artifact.name
    if not NAME.fullmatch(name):
        raise SystemExit(
            f"{name!r} cannot be the name of a distribution: give a --name of lower case letters, "
            "digits and single hyphens"
        )
    license_text = _find_license(model, artifact.license)
    card_text = _find_card(model).read_text(encoding="utf-8")
    package = project / name.replace("-", "_")
    if project.is_dir() and any(project.iterdir()):
        raise SystemExit(f"{project} is not empty: remove it first, or give another --out")
    _copy_model(model, package, name)
    shutil.copyfile(license_text, project / LICENSE)
    title = f"# {artifact.name}\n"
    (project / card.FILE).write_text(card_text.replace(title, f"# {name}\n", 1), encoding="utf-8")
    description = f"The model {name} for hybrid_search"
    (package / "__init__.py").write_text(
        f'"""{description}: its folder is a model folder."""\n', encoding="utf-8"
    )
    values = {
        "name": name,
        "version": version,
        "description": description,
        "license": artifact.license,
        "group": GROUP,
        "package": package.name,
    }
    quoted = {key: json.dumps(value, ensure_ascii=False) for key, value in values.items()}
    (project / "pyproject.toml").write_text(PROJECT.format(**quoted), encoding="utf-8")


def _copy_model(model: Path, package: Path, name: str) -> None:
    """Copy the files of a model folder into the folder of a package, and give the model its name.

    Raises:
        SystemExit: If a file is too large.
    """
    beside = {card.FILE, LICENSE, "__init__.py"}
    files = [
        path
        for path in sorted(model.iterdir())
        if path.is_file() and path.name not in beside and not path.name.startswith(".")
    ]
    for file in files:
        if (size := file.stat().st_size) > LARGEST:
            raise SystemExit(
                f"{file} has {size / MEGABYTE:.0f} MB, and a file of a package may have "
                f"{LARGEST // MEGABYTE}: export the model again, which splits its weights"
            )
    package.mkdir(parents=True)
    for file in files:
        shutil.copyfile(file, package / file.name)
    settings_path = package / model_folder.SETTINGS
    settings = json.loads(settings_path.read_text(encoding="utf-8"))
    settings_path.write_text(json.dumps({**settings, "name": name}, indent=2) + "\n")


def _find_card(model: Path) -> Path:
    path = model / card.FILE
    if not path.is_file():
        raise SystemExit(f"{path} is missing: say there what the model is and was trained on")
    return path


def _find_license(model: Path, license_name: str) -> Path:
    """Return the text of the licence: the model folder's, or that of this project."""
    path = model / LICENSE
    if path.is_file():
        return path
    if license_name == OWN_LICENSE_NAME:
        return OWN_LICENSE
    raise SystemExit(f"{path} is missing: put the text of the licence {license_name} there")


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", required=True, type=Path, help="a model folder")
    parser.add_argument("--out", required=True, type=Path, help="the project's folder, a new one")
    parser.add_argument("--name", help="what the model is called; default: as encoder.json says")
    parser.add_argument("--version", default="0.1.0", help="of the distribution; default: 0.1.0")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command.

    Raises:
        SystemExit: If the model folder cannot be packed.
    """
    options = parse_arguments(arguments)
    try:
        write_project(options.model, options.out, options.name, options.version)
    except HybridSearchError as error:
        raise SystemExit(str(error)) from error
    print(f"wrote {options.out}: build it with python -m pip wheel --no-deps {options.out}")


if __name__ == "__main__":
    main()
