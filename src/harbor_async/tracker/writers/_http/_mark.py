"""Marks in comments, by which a writer knows its own again: readers do not see them."""

import re
from hashlib import sha256
from typing import Final

from ...._categories import Delivery, ErrorCategory
from ..._writer import TrackerError

_LINK: Final = "harbor-async:link"
_LINE: Final = re.compile(r"^Pull request: (\S+)\s*$", re.MULTILINE)
_URL: Final = re.compile(r"""https?://[^\s<>"\x00-\x1f\x7f]+""")


def mark(key: str) -> str:
    """Return the mark of a write: the same for the same key, and with nothing in it that a tracker would change."""
    return f"harbor-async:{sha256(key.encode(errors='surrogatepass')).hexdigest()[:32]}"


def hide(text: str, mark: str) -> str:
    """Return ``text`` with a mark in it that Markdown does not show: an HTML comment."""
    return f"{text}\n\n<!-- {mark} -->"


def link_text(url: str) -> str:
    """Return the comment that links a pull request; trackers make a reference of an address that stands by itself."""
    return hide(f"Pull request: {url}", _LINK)


def links_in(text: str) -> list[str]:
    """Return the pull requests that a comment of ``link_text`` links; none for any other comment."""
    return _LINE.findall(text) if _LINK in text else []


def check_url(url: str) -> None:
    """Refuse what is no address of a pull request.

    Raises:
        TrackerError: It is none (``validation``).
    """
    if not _URL.fullmatch(url):
        msg = "expected the address of a pull request, as 'https://example.org/owner/repo/pull/1'"
        raise TrackerError(msg, category=ErrorCategory.VALIDATION, delivery=Delivery.NOT_SENT)
