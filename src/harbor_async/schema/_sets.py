"""Sets of values that a stranger chose.

The hash of an int is its remainder by 2**61 - 1, so that whoever picks the numbers picks the hashes; decimals, UUIDs
and tuples of such are no better. A set of values that hash alike takes quadratic time: half a megabyte took 6 s.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

FEW: Final = 32
"""So many values may hash alike: then the time is still linear, at 16 comparisons for each."""


class AlikeError(ValueError):
    """Too many different items of a set have the same hash."""

    def __init__(self) -> None:
        """Say how many are too many."""
        super().__init__(f"more than {FEW} different items have the same hash; send fewer")


def maker(make: type) -> Callable[[Iterable[Any]], Any]:
    """Return what makes a ``make`` of decoded items: for sets, a function that refuses to be slowed down."""
    if make is set:
        return wide_set
    return (lambda items: frozenset(wide_set(items))) if make is frozenset else make


def wide_set(items: Iterable[Any]) -> set[Any]:
    """Return the set of ``items``.

    Raises:
        AlikeError: Too many different ones have the same hash.
    """
    listed = list(items)
    # Hashes are ints of 64 bits, of which at most eight hash alike.
    if len(listed) - len(set(map(hash, listed))) > FEW:
        _check(listed)
    return set(listed)


def _check(items: list[Any]) -> None:
    alike: dict[int, list[Any]] = {}
    for item in items:
        known = alike.setdefault(hash(item), [])
        if item not in known:
            known.append(item)
            if len(known) > FEW:
                raise AlikeError
