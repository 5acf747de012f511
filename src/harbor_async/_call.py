"""One call in flight, what it shares with others, and what of a tool it needs."""

import logging
import math
from collections.abc import Awaitable, Callable, Iterator
from contextvars import Context, ContextVar
from itertools import count
from typing import Any, Final, Protocol, TypeAlias
from uuid import uuid4

import anyio

from ._backend import Backend
from ._context import Identity
from ._crew import Crew
from ._events import EventType, Outlets, ToolEvent
from ._limiter import Limiter, Ticket
from ._limits import Limits
from ._policy import ToolPolicy
from ._results import Failure, Repair
from ._tool import Tool

_LOG: Final = logging.getLogger("harbor_async")

Progress: TypeAlias = Callable[[float, float | None, str], None]
"""Takes what a tool says of its progress: how much is done, of how much, and a few words."""


class Function(Protocol):
    """What is run: a tool's descriptor."""

    @property
    def tool(self) -> Tool:
        """What a model sees of it."""
        ...

    @property
    def name(self) -> str:
        """Its name, for messages."""
        ...

    @property
    def policy(self) -> ToolPolicy:
        """The policy of its calls."""
        ...

    @property
    def is_sync(self) -> bool:
        """Whether it runs in a worker thread."""
        ...

    @property
    def is_limited(self) -> bool:
        """Whether it has a limit of its own or a group."""
        ...

    @property
    def max_running(self) -> int | None:
        """How many calls of it run at once; None: no limit of its own."""
        ...

    @property
    def weight(self) -> int:
        """How many places one call takes."""
        ...

    @property
    def render(self) -> Callable[[Failure, Any], str] | None:
        """What says in its own words why a call has no value, given that and the arguments as they came."""
        ...

    def find_group(self, call: "Call") -> str | None:
        """Return the exclusive group of ``call``, whose arguments are decoded."""
        ...

    def may_repeat(self, call: "Call") -> bool:
        """Say whether the effect of ``call`` may be repeated."""
        ...

    def start(self, call: "Call") -> Awaitable[Any]:
        """Call the function, with fresh arguments, for attempt ``call.attempts``."""
        ...

    def decode(self, arguments: Any, limits: Limits) -> Any:
        """Return what ``Call.bound`` is to hold; raise ``InvalidArgumentsError`` when they do not fit."""
        ...

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return that for a program's own arguments; raise ``TypeError`` when they do not fit."""
        ...

    def encode(self, value: Any) -> bytes:
        """Return a result as JSON; raise ``InvalidOutputError`` when it does not fit."""
        ...


class Host:
    """What the calls of one runtime share while it is open.

    Attributes:
        backend: The running event loop.
        limits: The bounds of the arguments, and of how many run.
        has_places: Whether those bound how many run.
        random: Uniform in [0, 1), for jitter.
        limiter: Where calls get their turns; None outside of a runtime.
        threads: Where a synchronous function gets the place of its thread; None: from anyio's own limiter.
        outlets: Who listens to what happens; None: nobody.
        in_flight: The calls that have begun and not ended.
        background: Threads that nobody waits for and that still run.
        is_closing: Whether no further calls are taken, but from within those that run.
        idle: Set when the last call ends; None: nobody waits for that.
    """

    __slots__ = (
        "_keys",
        "_prefix",
        "backend",
        "background",
        "has_places",
        "idle",
        "in_flight",
        "is_closing",
        "limiter",
        "limits",
        "outlets",
        "random",
        "threads",
    )

    limiter: Limiter | None
    threads: Limiter | None
    outlets: Outlets | None
    idle: anyio.Event | None
    is_closing: bool

    def __init__(self, backend: Backend, limits: Limits, random: Callable[[], float]) -> None:
        """Begin without limits and listeners."""
        self.backend: Backend = backend
        self.limits: Limits = limits
        self.has_places: bool = limits.max_running is not None or limits.max_running_per_tenant is not None
        self.random: Callable[[], float] = random
        self.limiter = None
        self.threads = None
        self.outlets = None
        self.in_flight: set[Call] = set()
        self.background: int = 0
        self.is_closing = False
        self.idle = None
        self._prefix = ""
        self._keys = count(1)

    def make_key(self) -> str:
        """Return a new idempotency key, in the form of a random UUID: a random part of this host's, and a count.

        ``uuid4`` for each took 2.5 µs, a third of a call.
        """
        if not self._prefix:
            self._prefix = uuid4().hex[:20]
        return f"{self._prefix}{next(self._keys):012x}"


class Call:
    """One call in flight: everything about it that changes.

    Attributes:
        host: What it shares with others.
        backend: The running event loop.
        function: What is run.
        id: The call's id.
        identity: On whose behalf it is made; None: the program's own.
        arguments: What ``Function.start`` decodes, as it came; None when ``bound`` is what a program passed.
        started: When the call began, on the loop's clock.
        deadline: When it ends; ``math.inf`` if never.
        parent: The nearest of the calls from within which it is made that has something which others may wait for.
        crew: The crew whose child this call is; None when it runs in its caller's task.
        index: The call's place in its batch, once it has one.
        bound: Decoded arguments that no attempt has used yet; None also before they are decoded.
        context: The context variables with which its crew has begun it. One for all that begin together: a copy for
            each made a batch of 10,000 a seventh dearer, most of it for the garbage collector.
        key: Names it for the other side, the same in all attempts; empty until somebody asks.
        ticket: Its turn, where it needs one.
        thread: The place of a synchronous function's thread, until the thread takes it over.
        is_in_thread: Whether its function runs in a thread, or has left one behind that runs.
        attempts: Runs of the function so far.
        attempt_deadline: When the running attempt ends.
        scope: The scope in which the call waits just now.
        is_bounded: Whether the queue before the places is bounded for it.
        is_canceled: Whether its handle was canceled.
        left: What runs in the threads that could not be stopped, of all attempts.
        value: What an attempt that was stepped by hand has returned.
        is_late: Whether its value came after its end, and stands because the effect has happened.
        repairs: What was mended in its arguments.
        on_progress: Told of its progress besides those who listen; None: nobody is.
    """

    __slots__ = (
        "arguments",
        "attempt_deadline",
        "attempts",
        "backend",
        "bound",
        "context",
        "crew",
        "deadline",
        "function",
        "host",
        "id",
        "identity",
        "index",
        "is_bounded",
        "is_canceled",
        "is_in_thread",
        "is_late",
        "key",
        "left",
        "on_progress",
        "parent",
        "repairs",
        "scope",
        "started",
        "thread",
        "ticket",
        "value",
    )

    backend: Backend
    function: Function
    id: str
    identity: Identity | None
    arguments: Any
    started: float
    deadline: float
    crew: Crew | None
    parent: "Call | None"
    context: Context
    key: str
    index: int
    attempts: int
    attempt_deadline: float
    scope: anyio.CancelScope | None
    ticket: Ticket | None
    thread: Ticket | None
    is_canceled: bool
    is_in_thread: bool
    is_late: bool
    is_bounded: bool
    on_progress: Progress | None
    repairs: tuple[Repair, ...]
    value: Any

    def __init__(  # noqa: PLR0917 - what tells one call from another; keywords cost on the hot path
        self,
        host: Host,
        function: Function,
        id: str,
        arguments: Any,
        deadline: float = math.inf,
        crew: Crew | None = None,
        identity: Identity | None = None,
    ) -> None:
        """Begin a call now."""
        self.host: Host = host
        self.backend = host.backend
        self.function = function
        self.id = id
        self.identity = identity
        self.arguments = arguments
        self.started = host.backend.time()
        self.deadline = deadline
        self.crew = crew
        self.parent = CURRENT.get()
        self.bound: Any = None
        self.key = ""
        self.ticket = None
        self.thread = None
        self.left: tuple[Any, ...] = ()
        self.is_bounded = True
        self.is_in_thread = False
        self.attempts = 0
        self.scope = None
        self.is_canceled = False
        self.is_late = False
        self.on_progress = None
        self.repairs = ()

    def callers(self) -> "Iterator[Call]":
        """Yield the calls from within which this one is made, the nearest first; see ``parent`` for which."""
        call = self.parent
        while call is not None:
            yield call
            call = call.parent

    def tell(self, type: EventType, **more: Any) -> None:
        """Tell those who listen what happens to this call; ``more`` are fields of ``ToolEvent``."""
        outlets = self.host.outlets
        if outlets is None:
            return
        now = self.backend.time()
        event = ToolEvent(
            type=type,
            call_id=self.id,
            tool=self.function.name,
            transport=self.function.tool.transport,
            time=now,
            identity=self.identity,
            attempts=self.attempts,
            elapsed=now - self.started,
            **more,
        )
        outlets.put(event)

    def tell_progress(self, done: float, total: float | None, message: str) -> None:
        """Tell those who listen, and whoever asked for this call, how far it is."""
        self.tell(EventType.PROGRESS, done=done, total=total, message=message)
        if self.on_progress is not None:
            try:
                self.on_progress(done, total, message)
            except Exception:  # noqa: BLE001 - a listener's fault must not become the tool's
                _LOG.exception("on_progress of a call of tool %r failed", self.function.name)

    @property
    def is_background(self) -> bool:
        """Whether one of its threads could not be stopped, and still runs."""
        return any(work.is_background for work in self.left)


CURRENT: ContextVar[Call | None] = ContextVar("harbor_async.current", default=None)
"""The call whose function the running code belongs to, if it has something that others may wait for."""
