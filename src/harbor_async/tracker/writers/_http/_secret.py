"""A token, where nothing may show it."""

import base64
from hmac import compare_digest
from typing import Final, NoReturn, Self

from ....errors import InvalidToolError

SHOWN: Final = "***"
"""What stands where a token was."""


class Secret:
    """A token. Its text, in logs, tracebacks and debuggers that show values, is ``***``; ``reveal`` gives the token.

    It cannot be pickled.
    """

    __slots__ = ("_hidden", "_value")

    def __init__(self, token: str) -> None:
        """Keep ``token``, without the white space round it, as the last line end of a file.

        Raises:
            InvalidToolError: It is empty, or has what no header may carry: anything but visible ASCII.
        """
        value = token.strip() if isinstance(token, str) else ""
        if not value or not value.isascii() or not value.isprintable() or " " in value:
            msg = "expected a token: text of visible ASCII characters, not empty"
            raise InvalidToolError(msg)
        self._value: str = value
        self._hidden: tuple[str, ...] = (value,)

    @classmethod
    def of(cls, token: "Secret | str") -> "Secret":
        """Return ``token`` as a secret.

        Raises:
            InvalidToolError: As for ``Secret``.
        """
        return token if isinstance(token, Secret) else cls(token)

    def prefixed(self, prefix: str) -> Self:
        """Return the value of a header: ``prefix``, which is not secret, and the token."""
        return self._derived(f"{prefix}{self._value}")

    def basic(self, user: str) -> Self:
        """Return the value of an ``Authorization`` header for HTTP Basic, the token being the password.

        Source: RFC 7617 §2.
        """
        pair = base64.b64encode(f"{user}:{self._value}".encode()).decode()
        return self._derived(f"Basic {pair}", pair)

    def reveal(self) -> str:
        """Return the token, or the header's value. Keep it out of variables: tracebacks show those."""
        return self._value

    def redact(self, text: str) -> str:
        """Return ``text`` with ``***`` wherever the token stands in it."""
        for hidden in self._hidden:
            text = text.replace(hidden, SHOWN)
        return text

    def _derived(self, value: str, *hidden: str) -> Self:
        derived = object.__new__(type(self))
        derived._value = value
        derived._hidden = (*hidden, *self._hidden)
        return derived

    def __repr__(self) -> str:
        """Return what tells nothing."""
        return f"Secret({SHOWN!r})"

    def __str__(self) -> str:
        """Return what tells nothing."""
        return SHOWN

    def __eq__(self, other: object) -> bool:
        """Say whether both are the same token."""
        return isinstance(other, Secret) and compare_digest(self._value, other._value)

    def __hash__(self) -> int:
        """Return a hash that fits ``==``."""
        return hash(self._value)

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled, which would write the token down.

        Raises:
            TypeError: Always.
        """
        msg = "a Secret cannot be pickled"
        raise TypeError(msg)
