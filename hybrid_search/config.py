"""Settings from the environment: the only module that reads it.

HYBRID_SEARCH_URL          where indexes live: embedded:PATH, memory:, a server's URL
                           (default: embedded: in the user's data folder)
HYBRID_SEARCH_MODEL        a model folder, or the name of an installed model
                           (default: the shipped model)
HYBRID_SEARCH_DEVICE       auto, cpu, cuda or tensorrt (default: auto)
HYBRID_SEARCH_PRECISION    auto, int8, float16 or float32
                           (default: auto, which is int8 on CPUs and float16 elsewhere)
HYBRID_SEARCH_DIMENSION    vector dimension of new indexes, one of the model's sizes
                           (default: the model's usual one)
HYBRID_SEARCH_TUNING       file of tuned probabilities for queries
                           (default: none, for the shipped ones)

Access to a server, with at most one login; a secret is either given or read from a file:

HYBRID_SEARCH_USERNAME     with HYBRID_SEARCH_PASSWORD or HYBRID_SEARCH_PASSWORD_FILE
HYBRID_SEARCH_API_KEY      or HYBRID_SEARCH_API_KEY_FILE
HYBRID_SEARCH_TOKEN        or HYBRID_SEARCH_TOKEN_FILE: a bearer token
HYBRID_SEARCH_AWS_REGION   sign requests for this region, with the credentials AWS tools would use
HYBRID_SEARCH_AWS_SERVICE  the service to sign for (default: es)
HYBRID_SEARCH_CA           PEM file of trusted certificates (default: those of the system)
HYBRID_SEARCH_VERIFY       false accepts any certificate (default: true)
HYBRID_SEARCH_TIMEOUT      seconds that a server may be silent (default: 60)
HYBRID_SEARCH_ANSWER_MEGABYTES
                           the largest response that is read, also unpacked (default: 256)
HYBRID_SEARCH_PATIENCE     seconds an ingest waits for a server that takes nothing; 0 means a few
                           tries (default: 600)

Libraries that report their use to their makers are told not to, unless the user decided otherwise:

ORT_DISABLE_TELEMETRY      true keeps ONNX Runtime from it (default: 1)
RAY_USAGE_STATS_ENABLED    0 keeps Ray from it (default: 0)
HAYSTACK_TELEMETRY_ENABLED
                           false keeps Haystack from it (default: false, where our retriever
                           imports it)

The command line alone sets, unless the user decided otherwise:

OPENBLAS_THREAD_TIMEOUT    how long an idle thread of numpy's keeps its core busy: this power of 2
                           in cycles, 4 to 30 (default: 4)
PYDANTIC_DISABLE_PLUGINS   1 keeps pydantic from looking for plugins, 0 lets it (default: 1)
"""

# The annotations of a table are read at run time, so they are not postponed here.
import logging
import math
import os
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, TypedDict, Unpack

import platformdirs

from hybrid_search.credentials import (
    ANSWER_MEGABYTES,
    PATIENCE,
    TIMEOUT,
    Access,
    Secret,
    is_ascii_word,
    read_private_text,
    refuse_secrets,
)
from hybrid_search.errors import UsageError
from hybrid_search.parameters import Parameter, check_text, complete

DEFAULT_INDEX = "calls"
DEFAULT_POLICY = "5/1"
"""The window policy of a new index, see `hybrid_search.text.window_policy`."""

DEFAULT_GRAPH_DIMENSION = 192
"""Maximum dimension of the vectors in the graph of a new index."""
DEFAULT_SAMPLE = 100
"""Number of documents that are encoded again to verify an index."""

BOOLEAN_WORDS = {
    "true": True,
    "1": True,
    "yes": True,
    "on": True,
    "false": False,
    "0": False,
    "no": False,
    "off": False,
}

ONNX_RUNTIME_SWITCH, RAY_SWITCH = "ORT_DISABLE_TELEMETRY", "RAY_USAGE_STATS_ENABLED"
HAYSTACK_SWITCH = "HAYSTACK_TELEMETRY_ENABLED"
PLUGIN_SWITCH = "PYDANTIC_DISABLE_PLUGINS"

BLAS_PATIENCE, LEAST_PATIENCE = "OPENBLAS_THREAD_TIMEOUT", "4"
"""How long an idle OpenBLAS thread spins before it sleeps: this power of 2 in cycles.

4 is the minimum of OpenBLAS; its default is 26 or more.
"""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Settings:
    """The effective settings: from arguments, else the environment, else the defaults."""

    url: str
    model: str | Path | None
    device: str
    access: Access = field(default_factory=Access)
    dimension: int | None = None
    precision: str = "auto"
    tuning: Path | None = None


Url = Annotated[
    str | None,
    Parameter(
        "Where indexes are: embedded:PATH, opensearch+https://HOST or "
        "elasticsearch+https://HOST. Default: HYBRID_SEARCH_URL, else the user's data folder.",
        panel="Server",
        value="URL",
    ),
]
Dimension = Annotated[
    int | None,
    Parameter(
        "Dimensions of a vector in a new index. Default: HYBRID_SEARCH_DIMENSION, else the model's "
        "usual size.",
        "Fewer take less space and time, and recall drops a little. Existing indexes keep theirs.",
        limits=(1, math.inf),
    ),
]
Patience = Annotated[
    float | None,
    Parameter(
        "Seconds to wait for a server that takes nothing, 0: a few tries. Default: "
        "HYBRID_SEARCH_PATIENCE, else 600.",
        limits=(0, math.inf),
    ),
]


class ModelOptions(TypedDict, total=False):
    """The parameters of `hybrid_search.connect` for the model."""

    model: Annotated[
        str | Path | None,
        Parameter(
            "A model folder, or the name of an installed model. Default: HYBRID_SEARCH_MODEL, else "
            "the shipped model."
        ),
    ]
    device: Annotated[
        str | None,
        Parameter(
            "auto, cpu, cuda or tensorrt. Default: HYBRID_SEARCH_DEVICE, else auto.",
            "cuda:1 is one card.",
        ),
    ]
    precision: Annotated[
        str | None,
        Parameter(
            "auto, int8, float16 or float32. Default: HYBRID_SEARCH_PRECISION, else auto: int8 on "
            "CPUs, float16 elsewhere.",
            "An index written at one precision can be searched at another.",
        ),
    ]


class ConnectOptions(ModelOptions, total=False):
    """The keyword parameters of `hybrid_search.connect`."""

    dimension: Dimension
    patience: Patience
    tuning: Annotated[
        str | Path | None,
        Parameter(
            "A file written by tune, for the probabilities of queries. Default: "
            "HYBRID_SEARCH_TUNING, else the model's own probabilities."
        ),
    ]


def settings(url: str | None = None, **options: Unpack[ConnectOptions]) -> Settings:
    """Return the settings; missing arguments come from the environment or are defaults.

    Raises UsageError if the URL holds a secret, or a variable is invalid or contradicts another.
    """
    if url is not None:
        check_text("url", url)
    url = url or _read("URL") or f"embedded:{platformdirs.user_data_path('hybrid_search')}"
    refuse_secrets(url)
    values = complete(ConnectOptions, options, "hybrid_search.connect")
    access = _access()
    if values["patience"] is not None:
        access = replace(access, patience=values["patience"])
    model, tuning = values["model"] or _read("MODEL"), _tuning_file(values["tuning"])
    device = values["device"] or _read("DEVICE") or "auto"
    dimension = values["dimension"] or _dimension()
    precision = values["precision"] or _read("PRECISION") or "auto"
    return Settings(url, model, device, access, dimension, precision, tuning)


def cache_folder() -> Path:
    """Return the user's cache folder, for files that can be recreated."""
    return platformdirs.user_cache_path("hybrid_search")


def disable_telemetry() -> None:
    """Keep ONNX Runtime from reporting to its makers, unless the user has set its variable.

    ONNX Runtime reads the variable when it is imported. If that has happened already, nothing is
    set, so that `reporting_libraries` stays accurate.
    """
    if "onnxruntime" not in sys.modules:
        _set_default(ONNX_RUNTIME_SWITCH, "1")


def disable_ray_reports() -> None:
    """Keep Ray clusters started after this from reporting to Ray's makers."""
    _set_default(RAY_SWITCH, "0")


def disable_haystack_reports() -> None:
    """Keep Haystack from reporting to its makers, unless it was imported first.

    Haystack reads the variable when it is imported, and stores a user id in the home folder.
    """
    if "haystack" not in sys.modules:
        _set_default(HAYSTACK_SWITCH, "false")


def leave_out_plugins() -> None:
    """Keep pydantic from looking for plugins, unless the user has set its variable.

    pydantic searches every installed distribution for plugins, and a plugin may report to its
    makers what pydantic validates. Call this only in our own programs.
    """
    _set_default(PLUGIN_SWITCH, "1")


def stop_idle_spinning() -> None:
    """Let idle threads of numpy's OpenBLAS sleep at once.

    Does nothing if the user has set the variable. By default each thread, one per core but one,
    keeps its core busy for 2**26 cycles (25 ms) or more when numpy is imported and after each
    product (https://github.com/OpenMathLib/OpenBLAS/issues/5171). Call this only in our own
    programs: a host of this library decides for itself. OpenBLAS reads the variable when numpy is
    imported.
    """
    if "numpy" not in sys.modules:
        _set_default(BLAS_PATIENCE, LEAST_PATIENCE)


def reporting_libraries() -> dict[str, str]:
    """Return libraries that may report to their makers, each with the setting to stop it."""
    libraries = {}
    if not BOOLEAN_WORDS.get(os.environ.get(ONNX_RUNTIME_SWITCH, "").lower(), False):
        libraries["ONNX Runtime"] = f"{ONNX_RUNTIME_SWITCH}=1"
    if (os.environ.get(RAY_SWITCH) or "0") != "0":
        libraries["Ray"] = f"{RAY_SWITCH}=0"
    return libraries


def _set_default(variable: str, value: str) -> None:
    if not os.environ.get(variable):
        os.environ[variable] = value


def _access() -> Access:
    """Return the server access configured in the environment.

    A password without a username is accepted here: the URL may still name the user.

    Raises:
        UsageError: If a variable is invalid or contradicts another.
    """
    region, service, ca = _read("AWS_REGION"), _read("AWS_SERVICE"), _read("CA")
    if service and not region:
        raise UsageError(
            f"HYBRID_SEARCH_AWS_SERVICE is {service!r} but HYBRID_SEARCH_AWS_REGION is not set: "
            "name the region to sign requests for"
        )
    if ca and not Path(ca).is_file():
        raise UsageError(
            f"HYBRID_SEARCH_CA names {ca!r}, which is not a file: name a PEM file of certificates"
        )
    timeout = _positive("TIMEOUT", "seconds", TIMEOUT)
    megabytes = _positive("ANSWER_MEGABYTES", "megabytes", ANSWER_MEGABYTES)
    login = {
        "password": _secret("PASSWORD"),
        "api_key": _header("API_KEY"),
        "token": _header("TOKEN"),
    }
    access = Access(
        username=_read("USERNAME"),
        **login,
        aws_region=region,
        aws_service=service or "es",
        ca=Path(ca) if ca else None,
        verify=_switch("VERIFY"),
        timeout=timeout,
        answer_megabytes=megabytes,
        patience=_positive("PATIENCE", "seconds", PATIENCE, or_none=True),
    )
    access.check()
    return access


def _read(name: str) -> str | None:
    """Return the value of HYBRID_SEARCH_`name`; an empty value counts as unset."""
    return os.environ.get(f"HYBRID_SEARCH_{name}") or None


def _secret(name: str) -> Secret | None:
    """Return a secret from its variable, or from the file in its ``_FILE`` variable."""
    value, file = _read(name), _read(f"{name}_FILE")
    if value and file:
        raise UsageError(
            f"HYBRID_SEARCH_{name} and HYBRID_SEARCH_{name}_FILE are both set: leave one out"
        )
    return Secret(value) if value else _read_secret_file(name, Path(file)) if file else None


def _read_secret_file(name: str, file: Path) -> Secret:
    variable = f"HYBRID_SEARCH_{name}_FILE"
    value = read_private_text(variable, file).rstrip("\r\n")
    if not value:
        raise UsageError(f"{variable} names {str(file)!r}, which is empty")
    return Secret(value)


def _header(name: str) -> Secret | None:
    """Return a secret that is sent verbatim in a header: one word of printable ASCII."""
    secret = _secret(name)
    if secret is not None and not is_ascii_word(secret.reveal()):
        raise UsageError(
            f"HYBRID_SEARCH_{name}, or the file that holds it, is not one word of plain ASCII, "
            "so it cannot be sent in a header: check for blanks and line breaks"
        )
    return secret


def _tuning_file(path: str | Path | None) -> Path | None:
    """Return the file of tuned probabilities; it must exist."""
    path = path or _read("TUNING")
    if path is not None and not Path(path).is_file():
        raise UsageError(
            f"the tuned probabilities {str(path)!r} are not a file: name one that hybrid-search "
            "tune has written, or unset HYBRID_SEARCH_TUNING"
        )
    return Path(path) if path else None


def _dimension() -> int | None:
    text = _read("DIMENSION")
    if text is not None and not (text.isascii() and text.isdecimal() and int(text)):
        raise UsageError(f"HYBRID_SEARCH_DIMENSION is {text!r}: it must be a positive whole number")
    return int(text) if text else None


def _switch(name: str) -> bool:
    text = (_read(name) or "true").lower()
    if text not in BOOLEAN_WORDS:
        raise UsageError(f"HYBRID_SEARCH_{name} is {text!r}: it must be true or false")
    return BOOLEAN_WORDS[text]


def _positive(name: str, unit: str, default: float, *, or_none: bool = False) -> float:
    text = _read(name)
    try:
        number = float(text or default)
    except ValueError:
        number = math.nan
    if not (0 < number < math.inf or (or_none and number == 0)):
        allowed = "0 or more" if or_none else "more than 0"
        raise UsageError(f"HYBRID_SEARCH_{name} is {text!r}: it must be {unit}, {allowed}")
    return number
