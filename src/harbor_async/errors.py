"""Every exception of the package.

::

    HarborError
    ├── RegistrationError           something a program can fix; raised before any call
    │   ├── DuplicateToolError
    │   ├── UnsupportedTypeError
    │   ├── SchemaBuildError
    │   ├── InvalidExampleError
    │   ├── InvalidToolError        also a ValueError
    │   └── ExportError             a tool cannot be said in a provider's dialect
    ├── ToolError                   a call failed; tools raise it themselves to say how
    │   ├── ToolNotFoundError
    │   ├── InvalidArgumentsError
    │   ├── InvalidOutputError
    │   ├── ScopeDeniedError
    │   ├── OverloadedError
    │   ├── ToolTimeoutError        also a TimeoutError
    │   └── ToolCanceledError
    └── MissingExtraError           also an ImportError

Data is carried in attributes; texts are for people and may change. No text holds an argument's value.
"""

import math
from collections.abc import Iterable
from typing import Literal, cast

import attrs

from ._categories import Delivery, ErrorCategory, ErrorClass

ProblemCode = Literal["missing", "unknown", "duplicate", "type", "value", "syntax", "too_large", "too_deep"]


@attrs.frozen
class Problem:
    """One fault in an argument object or in a result.

    Attributes:
        path: JSON Pointer (RFC 6901) to the faulty value; ``""`` is the whole document.
        code: What kind of fault it is.
        message: What was expected and what kind of thing came; never the value itself.
    """

    path: str
    code: ProblemCode
    message: str

    def __str__(self) -> str:
        """Return ``path: message``, or the message alone for the whole document."""
        return f"{self.path}: {self.message}" if self.path else self.message


class HarborError(Exception):
    """The base of every exception that this package defines."""


class RegistrationError(HarborError):
    """A tool, type, policy or catalog is declared wrongly."""


class DuplicateToolError(RegistrationError):
    """A catalog already holds a tool of this name.

    Attributes:
        name: The name that is taken.
    """

    def __init__(self, name: str) -> None:
        """Say that ``name`` is taken."""
        super().__init__(f"the catalog already has a tool named {name!r}; use replace() to change it")
        self.name = name


class UnsupportedTypeError(RegistrationError):
    """A type has no JSON form here.

    Attributes:
        where: The parameter or field, as ``parameter 'x', field Inner.y``.
        type_name: The type, as its author wrote it.
        advice: What to do instead.
    """

    def __init__(self, where: str, type_name: str, advice: str) -> None:
        """Say which type stands where, and what to write instead."""
        super().__init__(f"{where}: {type_name} has no JSON form; {advice}")
        self.where = where
        self.type_name = type_name
        self.advice = advice


class SchemaBuildError(RegistrationError):
    """A schema could not be built from types that are each supported."""


class InvalidExampleError(RegistrationError):
    """An example of a tool is refused by the tool's own decoder.

    Attributes:
        tool: The tool's name.
        index: Which example, from 0.
        problems: Everything that is wrong with it.
    """

    def __init__(self, tool: str, index: int, problems: Iterable[Problem]) -> None:
        """List what is wrong with example ``index`` of ``tool``."""
        self.tool = tool
        self.index = index
        self.problems: tuple[Problem, ...] = tuple(problems)
        listing = "; ".join(map(str, self.problems))
        super().__init__(f"tool {tool!r}: example {index} does not fit the arguments: {listing}")


class InvalidToolError(RegistrationError, ValueError):
    """A tool, or a value it is declared with, makes no sense: empty name, negative timeout, generator function."""


@attrs.frozen
class Refusal:
    """Why a tool cannot be said in a provider's dialect.

    Attributes:
        tool: The tool's name; ``""`` where it is about the whole list.
        path: JSON Pointer (RFC 6901) into the tool's schema.
        reason: What the dialect does not allow there.
    """

    tool: str
    path: str
    reason: str

    def __str__(self) -> str:
        """Return ``tool 'name' at /path: reason``, without what is empty."""
        where = f"tool {self.tool!r}" if self.tool else ""
        where = f"{where} at {self.path}".lstrip() if self.path else where
        return f"{where}: {self.reason}" if where else self.reason


class ExportError(RegistrationError):
    """Tools cannot be said in a provider's dialect.

    Attributes:
        dialect: The provider's name for it, as ``OpenAI strict``.
        refusals: Every reason.
    """

    def __init__(self, dialect: str, refusals: Iterable[Refusal]) -> None:
        """List why."""
        self.dialect = dialect
        self.refusals: tuple[Refusal, ...] = tuple(refusals)
        super().__init__(f"{dialect}: {'; '.join(map(str, self.refusals))}")


class ToolError(HarborError):
    """A call failed, and the raiser knows how.

    A tool raises it to choose the category that the model sees and whether a retry can help::

        raise ToolError("no such city", category=ErrorCategory.NOT_FOUND)

    Attributes:
        message: The text for the model.
        category: One of the twelve; None means ``unknown``.
        error_class: What the retry policy sees; None derives it from the category.
        retry_after: Seconds to wait before the next attempt, or None. Used when finite and not negative.
        delivery: What is known of the effect.
    """

    def __init__(
        self,
        message: str = "",
        *,
        category: ErrorCategory | str | None = None,
        error_class: ErrorClass | str | None = None,
        retry_after: float | None = None,
        delivery: Delivery | str = Delivery.UNKNOWN,
    ) -> None:
        """Make an error that carries its own verdict.

        Raises:
            ValueError: A word that is not in its enum.
        """
        super().__init__(message)
        self.message = message
        self.category: ErrorCategory | None = None if category is None else ErrorCategory(category)
        self.error_class: ErrorClass | None = None if error_class is None else ErrorClass(error_class)
        self.retry_after = retry_after
        self.delivery: Delivery = Delivery(delivery)


class ToolNotFoundError(ToolError):
    """No tool of this name is in the catalog.

    Attributes:
        name: The name that was asked for.
    """

    def __init__(self, name: str) -> None:
        """Say that the catalog has no tool ``name``."""
        super().__init__(
            f"no tool named {clip(str(name), 200)!r}", category=ErrorCategory.NOT_FOUND, delivery=Delivery.NOT_SENT
        )
        self.name = name


class InvalidArgumentsError(ToolError):
    """The arguments do not fit the tool; its function was not called.

    Attributes:
        problems: Everything that is wrong with them, in document order.
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        """List every problem of one argument object."""
        self.problems: tuple[Problem, ...] = tuple(problems)
        super().__init__(
            "invalid arguments: " + "; ".join(map(str, self.problems)),
            category=ErrorCategory.VALIDATION,
            delivery=Delivery.NOT_SENT,
        )


class InvalidOutputError(ToolError):
    """The function ran and returned what its own annotation denies, or what is no JSON.

    It is never retried: the effect has happened.

    Attributes:
        problems: What is wrong with the result.
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        """List every problem of one result."""
        self.problems: tuple[Problem, ...] = tuple(problems)
        super().__init__(
            "the tool ran, but returned an invalid result: " + "; ".join(map(str, self.problems)),
            category=ErrorCategory.UNKNOWN,
            error_class=ErrorClass.PERMANENT,
        )


class ScopeDeniedError(ToolError):
    """The identity lacks scopes that the tool asks for.

    Attributes:
        tool: The tool's name.
        missing: The scopes that were not granted, sorted.
    """

    def __init__(self, tool: str, missing: Iterable[str]) -> None:
        """Say which scopes ``tool`` needs and the caller lacks."""
        self.tool = tool
        self.missing: tuple[str, ...] = tuple(sorted(missing))
        super().__init__(
            f"tool {tool!r} needs scopes that were not granted: {', '.join(self.missing)}",
            category=ErrorCategory.AUTH_FAILED,
            delivery=Delivery.NOT_SENT,
        )


class OverloadedError(ToolError):
    """The queue is full; the call was not begun."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        """Say which limit was reached."""
        super().__init__(
            message, category=ErrorCategory.RATE_LIMITED, retry_after=retry_after, delivery=Delivery.NOT_SENT
        )


class ToolTimeoutError(ToolError, TimeoutError):
    """An attempt's timeout or a call's deadline passed.

    Attributes:
        ambiguous: Whether the tool may have had its effect all the same.
    """

    def __init__(self, message: str, *, ambiguous: bool = False) -> None:
        """Say which limit passed."""
        super().__init__(message, category=ErrorCategory.TIMEOUT, error_class=ErrorClass.TIMEOUT)
        self.ambiguous = ambiguous


class ToolCanceledError(ToolError):
    """The call was canceled: by its handle, its batch, or from within the tool.

    Attributes:
        ambiguous: Whether the tool may have had its effect all the same.
    """

    def __init__(self, message: str = "the call was canceled", *, ambiguous: bool = False) -> None:
        """Say what was canceled."""
        super().__init__(message, category=ErrorCategory.CANCELED, error_class=ErrorClass.PERMANENT)
        self.ambiguous = ambiguous


class MissingExtraError(HarborError, ImportError):
    """A feature needs an optional package.

    Attributes:
        extra: The extra to install.
    """

    def __init__(self, feature: str, extra: str) -> None:
        """Say what to install for ``feature``."""
        super().__init__(f"{feature} needs an optional package: pip install 'harbor-async[{extra}]'")
        self.extra = extra


def clip(text: str, limit: int = 2000) -> str:
    """Return ``text`` as UTF-8 can carry it, cut to ``limit`` characters, with a mark that says how many were cut."""
    cut = text[:limit]
    if not cut.isascii():  # lone surrogates stand in the names of files, too
        cut = cut.encode(errors="backslashreplace").decode()
    return cut if len(text) <= limit else f"{cut}… ({len(text) - limit} more characters)"


def sane_wait(seconds: object) -> float | None:
    """Return ``seconds`` if it is a finite number of seconds ≥ 0 (not a bool), else None."""
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        return None
    return float(seconds) if math.isfinite(seconds) and seconds >= 0 else None


def words(name: str, value: object) -> tuple[str, ...]:
    """Return an iterable of text as a tuple.

    Raises:
        InvalidToolError: It holds something else, or is itself text, which would fall into its letters.
    """
    is_list = isinstance(value, Iterable) and not isinstance(value, (str, bytes))
    items = tuple(cast("Iterable[object]", value)) if is_list else (None,)
    if not all(isinstance(item, str) for item in items):
        msg = f"{name}: expected a list, tuple or set of text, as {{'weather:read'}}; got {value!r}"
        raise InvalidToolError(msg)
    return cast("tuple[str, ...]", items)
