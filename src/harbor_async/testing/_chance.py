"""Chance that a test decides."""

from collections.abc import Iterable


class ScriptedRandom:
    """A random source that returns what it was told, in that order. Give it where ``random.random`` would go.

    Attributes:
        used: How many values were asked for so far.
    """

    def __init__(self, values: Iterable[float]) -> None:
        """Keep the values.

        Args:
            values: Each in [0, 1).

        Raises:
            ValueError: A value is out of range.
        """
        self._values = tuple(values)
        self.used: int = 0
        if not all(0 <= value < 1 for value in self._values):
            msg = f"values: expected numbers of at least 0 and below 1; got {self._values!r}"
            raise ValueError(msg)

    def __call__(self) -> float:
        """Return the next value.

        Raises:
            LookupError: More were asked for than scripted.
        """
        if self.used == len(self._values):
            msg = f"ScriptedRandom has {len(self._values)} values and was asked for one more"
            raise LookupError(msg)
        self.used += 1
        return self._values[self.used - 1]
