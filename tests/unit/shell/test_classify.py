"""Every exception has a class, told by its type and its attributes and never by its words."""

import asyncio
import builtins
import concurrent.futures
import errno
import http.client
import json
import socket
import sqlite3
import ssl
import urllib.error
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from types import SimpleNamespace

import pytest

from harbor_async import Backoff, Delivery, ErrorCategory, ErrorClass, ToolError, ToolPolicy, describe
from harbor_async.testing import run_virtual

ONCE = ToolPolicy(attempts=1)


def failure_of(error, policy=ONCE):
    """Return what a tool's call that raises ``error`` fails with."""

    async def fails():
        raise error

    async def main():
        return (await describe(fails, policy=policy).invoke()).error

    return run_virtual(main)


def verdict(error):
    failure = failure_of(error)
    return failure.error_class, failure.category, failure.delivery


PERMANENT = (ErrorClass.PERMANENT, ErrorCategory.UNKNOWN, Delivery.UNKNOWN)
TRANSIENT = (ErrorClass.TRANSIENT, ErrorCategory.UNKNOWN, Delivery.UNKNOWN)
TIMEOUT = (ErrorClass.TIMEOUT, ErrorCategory.TIMEOUT, Delivery.UNKNOWN)
CONNECTION = (ErrorClass.TRANSIENT, ErrorCategory.API_REQUEST, Delivery.UNKNOWN)
NO_CONNECTION = (ErrorClass.TRANSIENT, ErrorCategory.API_REQUEST, Delivery.NOT_SENT)
NO_CONNECTION_IN_TIME = (ErrorClass.TIMEOUT, ErrorCategory.TIMEOUT, Delivery.NOT_SENT)

OWN = {
    "BrokenPipeError": CONNECTION,
    "ConnectionError": CONNECTION,
    "ConnectionAbortedError": CONNECTION,
    "ConnectionRefusedError": NO_CONNECTION,
    "ConnectionResetError": CONNECTION,
    "TimeoutError": TIMEOUT,
    # These say nothing, like a class that nobody knows; a coroutine turns StopIteration into a RuntimeError.
    "Exception": TRANSIENT,
    "RuntimeError": TRANSIENT,
    "PythonFinalizationError": TRANSIENT,
    "StopAsyncIteration": TRANSIENT,
    "StopIteration": TRANSIENT,
}
LEAVES = {"KeyboardInterrupt", "SystemExit", "BaseException", "BaseExceptionGroup", "GeneratorExit", "ExceptionGroup"}
BUILTIN = {
    name: kind
    for name, kind in vars(builtins).items()
    if isinstance(kind, type) and issubclass(kind, Exception) and name not in LEAVES and not issubclass(kind, Warning)
}


@pytest.mark.parametrize("name", sorted(BUILTIN))
def test_every_builtin_exception_has_its_class(name):
    """Connection errors and timeouts may be tried again; all that a program does wrong is permanent."""
    if name in {"UnicodeDecodeError", "UnicodeEncodeError"}:
        error = BUILTIN[name]("utf-8", b"x" if name == "UnicodeDecodeError" else "x", 0, 1, "words")
    elif name == "UnicodeTranslateError":
        error = UnicodeTranslateError("x", 0, 1, "words")
    else:
        error = BUILTIN[name]("words")
    assert OWN.get(name, PERMANENT) == verdict(error)


@pytest.mark.parametrize("name", sorted(name for name, kind in vars(builtins).items() if name.endswith("Warning")))
def test_a_warning_that_is_raised_is_like_an_unknown_error(name):
    """Warnings raised as errors say nothing of a retry."""
    assert TRANSIENT == verdict(getattr(builtins, name)("words"))


class UnknownError(Exception):
    """What nobody has heard of."""


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (UnknownError("row 500 is invalid"), TRANSIENT),
        (UnknownError("HTTP 503, timeout, permission denied"), TRANSIENT),
        (ValueError("invalid value for timeout"), PERMANENT),
        (ValueError("503 try again, connection reset"), PERMANENT),
        (KeyError("timeout"), PERMANENT),
        (PermissionError("connection refused"), PERMANENT),
        (json.JSONDecodeError("timeout", "x", 0), PERMANENT),
        (asyncio.InvalidStateError("x"), TRANSIENT),
        (concurrent.futures.BrokenExecutor("x"), TRANSIENT),
        (sqlite3.OperationalError("database is locked"), TRANSIENT),
        (socket.gaierror(socket.EAI_AGAIN, "x"), NO_CONNECTION),
        (ssl.SSLError(1, "x"), PERMANENT),
        (http.client.RemoteDisconnected("x"), CONNECTION),
        (http.client.IncompleteRead(b""), TRANSIENT),
        (urllib.error.URLError("x"), CONNECTION),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_words_never_decide(error, expected):
    """Types do, whatever the text says (N24)."""
    assert expected == verdict(error)


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (errno.ENETUNREACH, NO_CONNECTION),
        (errno.EHOSTUNREACH, NO_CONNECTION),
        (errno.EAGAIN, CONNECTION),
        (errno.ENOTCONN, CONNECTION),
        (errno.ECONNRESET, CONNECTION),
        (errno.ECONNREFUSED, NO_CONNECTION),
        (errno.ETIMEDOUT, TIMEOUT),
        (errno.ENOENT, PERMANENT),
        (errno.EACCES, PERMANENT),
        (errno.ENOSPC, PERMANENT),
    ],
)
def test_an_os_error_is_told_by_its_number(number, expected):
    """Connections may be tried again, files not."""
    assert expected == verdict(OSError(number, "words"))


# --- libraries, by fakes of their exception trees -----------------------------------------------------------------


def tree(package, text):
    """Make exception classes of ``Name(Base, …)`` lines as if ``package`` had them."""
    made = {}
    for line in text.split():
        name, _, bases = line.rstrip(")").partition("(")
        parents = tuple(made.get(base) or getattr(builtins, base) for base in bases.split(",") if base)
        made[name] = type(name, parents or (Exception,), {"__module__": f"{package}._exceptions"})
    return made


HTTPX = """
HTTPError RequestError(HTTPError) TransportError(RequestError) TimeoutException(TransportError)
ConnectTimeout(TimeoutException) ReadTimeout(TimeoutException) WriteTimeout(TimeoutException)
PoolTimeout(TimeoutException) NetworkError(TransportError) ReadError(NetworkError) WriteError(NetworkError)
ConnectError(NetworkError) CloseError(NetworkError) ProtocolError(TransportError) LocalProtocolError(ProtocolError)
RemoteProtocolError(ProtocolError) ProxyError(TransportError) UnsupportedProtocol(TransportError)
DecodingError(RequestError) TooManyRedirects(RequestError)
"""
HTTPX_VERDICTS = {
    "HTTPError": TRANSIENT,
    "RequestError": TRANSIENT,
    "DecodingError": TRANSIENT,
    "TooManyRedirects": TRANSIENT,
    "ConnectTimeout": NO_CONNECTION_IN_TIME,
    "PoolTimeout": NO_CONNECTION_IN_TIME,
    "ConnectError": NO_CONNECTION,
    "TimeoutException": TIMEOUT,
    "ReadTimeout": TIMEOUT,
    "WriteTimeout": TIMEOUT,
}


@pytest.mark.parametrize("package", ["httpx", "httpx2"])
def test_every_transport_error_of_httpx_has_its_class(package):
    """What surely never left is told from what may have arrived."""
    for name, kind in tree(package, HTTPX).items():
        assert HTTPX_VERDICTS.get(name, CONNECTION) == verdict(kind("words")), name


def test_the_errors_of_other_clients_have_their_class():
    """Those of requests and aiohttp tell a refused connection from a broken one, too."""
    requests = tree(
        "requests",
        "RequestException(OSError) ConnectionError(RequestException) Timeout(RequestException) "
        "ConnectTimeout(ConnectionError,Timeout) ReadTimeout(Timeout) SSLError(ConnectionError)",
    )
    expected = {
        "ConnectionError": CONNECTION,
        "Timeout": TIMEOUT,
        "ConnectTimeout": NO_CONNECTION_IN_TIME,
        "ReadTimeout": TIMEOUT,
        "SSLError": CONNECTION,
    }
    assert expected == {name: verdict(requests[name]("words")) for name in expected}
    aiohttp = tree(
        "aiohttp",
        "ClientError ClientConnectionError(ClientError) ClientOSError(ClientConnectionError,OSError) "
        "ClientConnectorError(ClientOSError) ServerDisconnectedError(ClientConnectionError) "
        "ServerTimeoutError(ServerDisconnectedError,TimeoutError)",
    )
    expected = {
        "ClientConnectionError": CONNECTION,
        "ClientConnectorError": NO_CONNECTION,
        "ServerDisconnectedError": CONNECTION,
        "ClientOSError": CONNECTION,
    }
    assert expected == {name: verdict(aiohttp[name]("words")) for name in expected}


def status_error(status, *, on="response", headers=None):
    error = UnknownError("words")
    if on == "response":
        error.response = SimpleNamespace(status_code=status, headers=headers or {})
    else:
        setattr(error, on, status)
    return error


STATUSES = {
    400: (ErrorClass.PERMANENT, "validation", "refused"),
    401: (ErrorClass.PERMANENT, "auth_failed", "refused"),
    403: (ErrorClass.PERMANENT, "auth_failed", "refused"),
    404: (ErrorClass.PERMANENT, "not_found", "refused"),
    405: (ErrorClass.PERMANENT, "unsupported", "refused"),
    408: (ErrorClass.TIMEOUT, "timeout", "unknown"),
    409: (ErrorClass.PERMANENT, "conflict", "refused"),
    410: (ErrorClass.PERMANENT, "not_found", "refused"),
    412: (ErrorClass.PERMANENT, "conflict", "refused"),
    418: (ErrorClass.PERMANENT, "api_status", "refused"),
    422: (ErrorClass.PERMANENT, "validation", "refused"),
    429: (ErrorClass.TRANSIENT, "rate_limited", "refused"),
    500: (ErrorClass.SERVER_ERROR, "api_status", "unknown"),
    502: (ErrorClass.SERVER_ERROR, "api_status", "unknown"),
    503: (ErrorClass.SERVER_ERROR, "api_status", "refused"),
    504: (ErrorClass.SERVER_ERROR, "api_status", "unknown"),
    599: (ErrorClass.SERVER_ERROR, "api_status", "unknown"),
}


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("on", ["response", "status_code", "status", "code"])
def test_an_answer_is_told_by_its_status(status, on):
    """A status on the exception or its response says more than the type."""
    assert STATUSES[status] == verdict(status_error(status, on=on))


@pytest.mark.parametrize("status", [True, "503", None, 200, 302, 600, 0, -503])
def test_what_is_no_error_status_is_not_taken_for_one(status):
    """Only a number from 400 to 599 is."""
    assert TRANSIENT == verdict(status_error(status))


def test_a_property_that_raises_loses_no_answer():
    """Attributes of a foreign exception are looked at with care."""

    class HostileError(Exception):
        @property
        def response(self):
            raise RuntimeError("not read")

        status = code = status_code = retry_after = response

    assert TRANSIENT == verdict(HostileError("words"))


# --- what the other side asks for ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("5", 5),
        (" 120 ", 120),
        ("0", 0),
        ("1.5", 1.5),
        ("-1", None),
        ("NaN", None),
        ("inf", None),
        ("1e3", None),
        ("", None),
        ("soon", None),
        ("9" * 400, None),
        ("Fri, 31 Dec 1999 23:59:59 GMT", None),
        ("Fri, 31 Dec 1999 23:59:59", None),
        ("\u0665", None),
    ],
)
def test_a_retry_after_header_is_read_or_ignored(asked, expected):
    """Whole seconds (decimals as some send) count; a past date and rubbish do not. Source: RFC 9110 §10.2.3 (N17)."""
    failure = failure_of(status_error(503, headers={"retry-after": asked}))
    assert expected == failure.retry_after


@pytest.mark.parametrize("name", ["retry-after", "Retry-After"])
def test_a_date_that_lies_ahead_is_a_wait(name):
    """An HTTP date becomes the seconds until then."""
    then = format_datetime(datetime.now(UTC) + timedelta(seconds=100), usegmt=True)
    assert 90 < failure_of(status_error(429, headers={name: then})).retry_after <= 100


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (3, 3),
        (0, 0),
        (2.5, 2.5),
        (float("nan"), None),
        (float("inf"), None),
        (-1, None),
        (True, None),
        ("7", 7),
        ([], None),
    ],
)
def test_a_retry_after_attribute_is_read_with_care(asked, expected):
    """On a ``ToolError`` and on any other exception."""
    error = UnknownError("words")
    error.retry_after = asked
    assert expected == failure_of(error).retry_after
    if not isinstance(asked, str):
        assert expected == failure_of(ToolError("words", retry_after=asked)).retry_after


# --- ToolError, and the policy's own rule -------------------------------------------------------------------------

CATEGORY_CLASS = {
    "unsupported_op": "permanent",
    "validation": "permanent",
    "not_found": "permanent",
    "auth_failed": "permanent",
    "conflict": "permanent",
    "api_request": "transient",
    "api_status": "5xx",
    "rate_limited": "transient",
    "timeout": "timeout",
    "unsupported": "permanent",
    "unknown": "transient",
    "canceled": "permanent",
}


@pytest.mark.parametrize("category", list(ErrorCategory))
def test_a_tool_error_of_each_category_has_its_class(category):
    """The twelve categories are complete, and each has a class."""
    assert (CATEGORY_CLASS[category], category, "unknown") == verdict(ToolError("words", category=category))


@pytest.mark.parametrize(
    ("kind", "category"),
    [("transient", "unknown"), ("timeout", "timeout"), ("5xx", "api_status"), ("permanent", "unknown")],
)
def test_a_tool_error_of_each_class_has_its_category(kind, category):
    """A class without a category has that of its kind; both together are kept."""
    assert (kind, category, "refused") == verdict(ToolError("words", error_class=kind, delivery="refused"))
    assert (kind, "conflict", "unknown") == verdict(ToolError("words", category="conflict", error_class=kind))


def test_the_policys_own_rule_is_asked_first():
    """Its answer changes class and category, None leaves both, and what it raises is no harm."""

    def rule(error):
        match str(error):
            case "locked":
                return ErrorClass.TIMEOUT
            case "broken rule":
                raise RuntimeError
            case "nonsense":
                return None
        return ErrorClass.PERMANENT

    policy = ToolPolicy(attempts=1, classify=rule)

    def answer(error):
        failure = failure_of(error, policy)
        return failure.error_class, failure.category

    assert ("timeout", "timeout") == answer(ValueError("locked"))
    assert ("permanent", "unknown") == answer(ValueError("broken rule"))
    assert ("transient", "unknown") == answer(UnknownError("nonsense"))
    assert ("permanent", "api_request") == answer(ConnectionError("else"))


def test_a_rule_that_answers_nonsense_loses_no_answer():
    """A word that is no class is as good as none."""
    failure = failure_of(UnknownError("words"), ToolPolicy(attempts=1, classify=lambda _: "whatever"))
    assert ErrorClass.TRANSIENT == failure.error_class


def test_the_default_waits_are_used_where_a_wait_breaks():
    """A wait of the user's that raises, or answers nonsense, does not lose the answer."""

    class Broken:
        def delay(self, retry, u):
            if retry == 1:
                raise RuntimeError
            return "soon"

    runs = []

    async def fails():
        runs.append(1)
        raise ConnectionError

    async def main():
        return await describe(fails, policy=ToolPolicy(attempts=3, wait=Broken())).invoke()

    result = run_virtual(main)
    assert (3, "attempts") == (result.attempts, result.stop_reason)
    assert result.elapsed <= Backoff().delay(1, 0) + Backoff().delay(2, 0)
