"""Settings from the environment: the only module that reads it.

docs/configuration.md says what each variable means.
"""

# The annotations of a table are read at run time, so they are not postponed here.
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

BOOLEAN_WORDS = dict.fromkeys(("true", "1", "yes", "on"), True)
BOOLEAN_WORDS |= dict.fromkeys(("false", "0", "no", "off"), False)

ONNX_RUNTIME_SWITCH, RAY_SWITCH = "ORT_DISABLE_TELEMETRY", "RAY_USAGE_STATS_ENABLED"
HAYSTACK_SWITCH = "HAYSTACK_TELEMETRY_ENABLED"


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
    url = (
        url
        or _read("HYBRID_SEARCH_URL")
        or f"embedded:{platformdirs.user_data_path('hybrid_search')}"
    )
    refuse_secrets(url)
    values = complete(ConnectOptions, options, "hybrid_search.connect")
    access = _access()
    if values["patience"] is not None:
        access = replace(access, patience=values["patience"])
    model, tuning = values["model"] or _read("HYBRID_SEARCH_MODEL"), _tuning_file(values["tuning"])
    device = values["device"] or _read("HYBRID_SEARCH_DEVICE") or "auto"
    dimension = values["dimension"] or _dimension()
    precision = values["precision"] or _read("HYBRID_SEARCH_PRECISION") or "auto"
    return Settings(url, model, device, access, dimension, precision, tuning)


def cache_folder() -> Path:
    """Return the user's cache folder, for files that can be recreated."""
    return platformdirs.user_cache_path("hybrid_search")


def disable_telemetry() -> None:
    """Keep ONNX Runtime from reporting to its makers, unless the user has set its variable."""
    _set_default(ONNX_RUNTIME_SWITCH, "1", reader="onnxruntime")


def disable_ray_reports() -> None:
    """Keep Ray clusters started after this from reporting to Ray's makers."""
    _set_default(RAY_SWITCH, "0")


def disable_haystack_reports() -> None:
    """Keep Haystack from reporting to its makers, and from storing a user id in the home folder."""
    _set_default(HAYSTACK_SWITCH, "false", reader="haystack")


def save_processor_time() -> None:
    """Keep pydantic from looking for plugins, and let idle threads of numpy's OpenBLAS sleep.

    pydantic searches every installed distribution for plugins, and a plugin may report to its
    makers what pydantic validates. By default each thread of OpenBLAS, one per core but one, keeps
    its core busy for 2**26 cycles (25 ms) or more when numpy is imported and after each product
    (https://github.com/OpenMathLib/OpenBLAS/issues/5171). Call this only in our own programs: a
    host of this library decides for itself.
    """
    _set_default("PYDANTIC_DISABLE_PLUGINS", "1")
    _set_default("OPENBLAS_THREAD_TIMEOUT", "4", reader="numpy")  # 2**4 cycles, the least


def reporting_libraries() -> dict[str, str]:
    """Return libraries that may report to their makers, each with the setting to stop it."""
    libraries = {}
    if not BOOLEAN_WORDS.get(os.environ.get(ONNX_RUNTIME_SWITCH, "").lower(), False):
        libraries["ONNX Runtime"] = f"{ONNX_RUNTIME_SWITCH}=1"
    if (os.environ.get(RAY_SWITCH) or "0") != "0":
        libraries["Ray"] = f"{RAY_SWITCH}=0"
    return libraries


def _set_default(variable: str, value: str, reader: str = "") -> None:
    """Set a variable that is unset, unless the library that reads it was imported before.

    A library reads its variable when it is imported, and `reporting_libraries` is to stay accurate.
    """
    if not os.environ.get(variable) and reader not in sys.modules:
        os.environ[variable] = value


def _access() -> Access:
    """Return the server access configured in the environment; the URL may still name the user."""
    region, service = _read("HYBRID_SEARCH_AWS_REGION"), _read("HYBRID_SEARCH_AWS_SERVICE")
    if service and not region:
        raise UsageError(
            f"HYBRID_SEARCH_AWS_SERVICE is {service!r} but HYBRID_SEARCH_AWS_REGION is not set: "
            "name the region to sign requests for"
        )
    ca = _read("HYBRID_SEARCH_CA")
    if ca and not Path(ca).is_file():
        raise UsageError(
            f"HYBRID_SEARCH_CA names {ca!r}, which is not a file: name a PEM file of certificates"
        )
    login = {
        "password": _secret("HYBRID_SEARCH_PASSWORD", "HYBRID_SEARCH_PASSWORD_FILE"),
        "api_key": _header("HYBRID_SEARCH_API_KEY", "HYBRID_SEARCH_API_KEY_FILE"),
        "token": _header("HYBRID_SEARCH_TOKEN", "HYBRID_SEARCH_TOKEN_FILE"),
    }
    timeout = _positive("HYBRID_SEARCH_TIMEOUT", "seconds", TIMEOUT)
    megabytes = _positive("HYBRID_SEARCH_ANSWER_MEGABYTES", "megabytes", ANSWER_MEGABYTES)
    access = Access(
        username=_read("HYBRID_SEARCH_USERNAME"),
        **login,
        aws_region=region,
        aws_service=service or "es",
        ca=Path(ca) if ca else None,
        verify=_switch("HYBRID_SEARCH_VERIFY"),
        timeout=timeout,
        answer_megabytes=megabytes,
        patience=_positive("HYBRID_SEARCH_PATIENCE", "seconds", PATIENCE, or_none=True),
    )
    access.check()
    return access


def _read(variable: str) -> str | None:
    """Return the value of a variable; an empty value counts as unset."""
    return os.environ.get(variable) or None


def _secret(variable: str, file_variable: str) -> Secret | None:
    """Return a secret from its variable, or from the file that the other variable names."""
    value, file = _read(variable), _read(file_variable)
    if value and file:
        raise UsageError(f"{variable} and {file_variable} are both set: leave one out")
    if file:
        value = read_private_text(file_variable, Path(file)).rstrip("\r\n")
        if not value:
            raise UsageError(f"{file_variable} names {file!r}, which is empty")
    return Secret(value) if value else None


def _header(variable: str, file_variable: str) -> Secret | None:
    """Return a secret that is sent verbatim in a header: one word of printable ASCII."""
    secret = _secret(variable, file_variable)
    if secret is not None and not is_ascii_word(secret.reveal()):
        raise UsageError(
            f"{variable}, or the file that holds it, is not one word of plain ASCII, "
            "so it cannot be sent in a header: check for blanks and line breaks"
        )
    return secret


def _tuning_file(path: str | Path | None) -> Path | None:
    """Return the file of tuned probabilities; it must exist."""
    path = path or _read("HYBRID_SEARCH_TUNING")
    if path is not None and not Path(path).is_file():
        raise UsageError(
            f"the tuned probabilities {str(path)!r} are not a file: name one that hybrid-search "
            "tune has written, or unset HYBRID_SEARCH_TUNING"
        )
    return Path(path) if path else None


def _dimension() -> int | None:
    text = _read("HYBRID_SEARCH_DIMENSION")
    if text is not None and not (text.isascii() and text.isdecimal() and int(text)):
        raise UsageError(f"HYBRID_SEARCH_DIMENSION is {text!r}: it must be a positive whole number")
    return int(text) if text else None


def _switch(variable: str) -> bool:
    text = (_read(variable) or "true").lower()
    if text not in BOOLEAN_WORDS:
        raise UsageError(f"{variable} is {text!r}: it must be true or false")
    return BOOLEAN_WORDS[text]


def _positive(variable: str, unit: str, default: float, *, or_none: bool = False) -> float:
    text = _read(variable)
    try:
        number = float(text or default)
    except ValueError:
        number = math.nan
    if not (0 < number < math.inf or (or_none and number == 0)):
        allowed = "0 or more" if or_none else "more than 0"
        raise UsageError(f"{variable} is {text!r}: it must be {unit}, {allowed}")
    return number
