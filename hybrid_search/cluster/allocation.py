"""The number of workers that a cluster gives, their device, and the resources of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from hybrid_search.encoder.devices import DEVICES
from hybrid_search.errors import UsageError


@dataclass(frozen=True, slots=True)
class WorkerAllocation:
    """The number of workers, their device, and the resources of each."""

    workers: int
    device: str
    resources_per_worker: Mapping[str, int]

    @classmethod
    def from_resources(
        cls, resources: Mapping[str, float], device: str, workers: int | None
    ) -> Self:
        """Return one worker a GPU if the device allows it and the cluster has any, else one a core.

        Args:
            resources: The cluster's resources, by Ray's names.
            device: One of `DEVICES`.
            workers: The number of workers; None for as many as there is room for.

        Raises:
            UsageError: If the device is unknown, or the cluster has no room for the workers.
        """
        if device not in DEVICES:
            raise UsageError(
                f"device {device!r} is not one of {', '.join(DEVICES)}: "
                "the Ray cluster chooses which card a worker has"
            )
        gpus = device in ("cuda", "tensorrt") or (device == "auto" and resources.get("GPU", 0) >= 1)
        kind = "GPU" if gpus else "CPU"
        available = int(resources.get(kind, 0))
        count = available if workers is None else workers
        if not 1 <= count <= available:
            raise UsageError(
                f"{max(count, 1)} workers need one {kind} each, but the Ray cluster has "
                f"{available}: request fewer, or another device"
            )
        return cls(
            count,
            ("cuda" if device == "auto" else device) if gpus else "cpu",
            {"num_gpus": 1, "num_cpus": 0} if gpus else {"num_cpus": 1},
        )
