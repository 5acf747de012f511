"""The eight multi-turn APIs of the Berkeley Function Calling Leaderboard as tools.

The package's functions are plain methods of stateful objects. Each becomes one tool that serves every session at once:
the objects of the session that calls are found in a context variable, as a server would find those of a request.
"""

import functools
import importlib
import inspect
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Final

import bfcl_eval
import mpmath
from anyio.lowlevel import checkpoint
from bfcl_eval.constants.executable_backend_config import CLASS_FILE_PATH_MAPPING, MULTI_TURN_FUNC_DOC_FILE_MAPPING

import harbor_async as ha
from harbor_async.schema import register_type

API_NAMES: Final = (
    "GorillaFileSystem",
    "MathAPI",
    "MessageAPI",
    "TicketAPI",
    "TradingBot",
    "TravelAPI",
    "TwitterAPI",
    "VehicleControlAPI",
)
DENIED: Final = frozenset(
    {
        "MathAPI.logarithm",  # says Dict[str, float]; gives a number of mpmath
        "MessageAPI.send_message",  # says Dict[str, str | bool]; gives a dict as message_id
        "MessageAPI.view_messages_sent",  # says lists of str; gives lists of lists
        "TravelAPI.compute_exchange_rate",  # says float; gives a dict
    }
)
"""Tools that return what their own annotation denies."""
UNANNOTATED: Final = frozenset(
    {"GorillaFileSystem.pwd", "VehicleControlAPI.check_tire_pressure", "VehicleControlAPI.display_log"}
)
"""Tools without a return annotation."""

instances: ContextVar[Mapping[str, Any]] = ContextVar("instances")
"""The objects of the session that calls, by the names of their classes."""

# float(x) rounds the number itself; str(x) would follow the precision that some session has set for the process.
register_type(mpmath.mpf, wire=float, structure=mpmath.mpf, unstructure=float)


def api_class(name: str) -> type[Any]:
    """Return the class of an API."""
    cls: type[Any] = getattr(importlib.import_module(CLASS_FILE_PATH_MAPPING[name]), name)
    return cls


def make_tools(unchecked: Iterable[str] = DENIED | UNANNOTATED) -> "list[ha.ToolDescriptor[..., Any]]":
    """Return a tool for every public function of every API, each named ``Class.function``.

    Args:
        unchecked: The tools whose results are not held against their annotation.
    """
    unchecked = frozenset(unchecked)
    return [
        ha.describe(
            _in_session(api, function),
            name=f"{api}.{function.__name__}",
            side_effect=ha.SideEffect.STATEFUL,
            policy=ha.ToolPolicy(check_output=f"{api}.{function.__name__}" not in unchecked),
        )
        for api in API_NAMES
        for function in _public_methods(api)
    ]


def _public_methods(api: str) -> list[Callable[..., Any]]:
    """Return the bound methods of an object without state: bound, so that their signatures are without ``self``."""
    methods = inspect.getmembers(api_class(api)(), inspect.ismethod)
    return [method for name, method in methods if not name.startswith("_")]


def _in_session(api: str, method: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    @functools.wraps(method)
    async def call(*args: Any, **kwargs: Any) -> Any:
        await checkpoint()  # lets the other sessions go on: the methods themselves never wait
        return getattr(instances.get()[api], method.__name__)(*args, **kwargs)

    return call


def documented_parameters() -> dict[str, dict[str, Any]]:
    """Return the parameters of every function as the package's own function documents give them, by tool name."""
    folder = Path(bfcl_eval.__file__).parent / "data" / "multi_turn_func_doc"
    return {
        f"{api}.{document['name']}": document["parameters"]
        for api in API_NAMES
        for document in map(json.loads, (folder / MULTI_TURN_FUNC_DOC_FILE_MAPPING[api]).read_text().splitlines())
    }
