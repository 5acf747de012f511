"""A sink that remembers."""

from typing import Any

import anyio
import attrs
from anyio.lowlevel import checkpoint

from .._events import EventType, ToolEvent

_FIELDS = frozenset(field.name for field in attrs.fields(ToolEvent))


class RecordingSink:
    """Keeps the events of a runtime: ``Runtime(catalog, sinks=[sink])``.

    A runtime tells its sinks in a task of its own, so an event may come after the result of its call: ``wait_for`` it,
    or look when the runtime is closed.

    Attributes:
        events: All that came, in their order.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self.events: list[ToolEvent] = []
        self._waiting: list[anyio.Event] = []

    async def emit(self, event: ToolEvent) -> None:
        """Keep an event. Not a checkpoint."""
        self.events.append(event)
        waiting, self._waiting = self._waiting, []
        for news in waiting:
            news.set()

    def select(self, *types: EventType | str, **fields: Any) -> list[ToolEvent]:
        """Return the events of these types that have these values.

        ::

            assert [1, 2] == [event.attempts for event in sink.select("tool.attempt", call_id="7")]

        Args:
            *types: Types; none means any.
            **fields: Attributes of ``ToolEvent`` and what each must be equal to.

        Raises:
            ValueError: There is no such type.
            TypeError: There is no such attribute.
        """
        wanted = set(map(EventType, types)) or set(EventType)
        if unknown := fields.keys() - _FIELDS:
            msg = f"a ToolEvent has no {', '.join(sorted(unknown))}"
            raise TypeError(msg)
        return [
            event
            for event in self.events
            if event.type in wanted and all(getattr(event, name) == value for name, value in fields.items())
        ]

    async def wait_for(self, *types: EventType | str, count: int = 1, **fields: Any) -> ToolEvent:
        """Wait until so many events of these types with these values have come, since the beginning.

        It waits as long as it takes: give it a deadline, as ``with anyio.fail_after(5):``. Always a checkpoint.

        Args:
            *types: As for ``select``.
            count: How many; at least 1.
            **fields: As for ``select``.

        Returns:
            The last of them.

        Raises:
            ValueError, TypeError: As ``select``.
        """
        await checkpoint()
        while len(found := self.select(*types, **fields)) < count:
            news = anyio.Event()
            self._waiting.append(news)
            await news.wait()
        return found[count - 1]
