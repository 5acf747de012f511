"""The tool: one operation on one issue, answered with an envelope of its own."""

from typing import Any, Final, Unpack, cast

import attrs
import msgspec

from .. import _json
from .._categories import Outcome, SideEffect
from .._context import ToolContext
from .._declaration import ToolOptions, describe
from .._descriptor import ToolDescriptor
from .._limits import Limits
from .._policy import ToolPolicy
from .._results import Arguments, Failure, ToolResult
from ..errors import InvalidToolError
from ._args import NAME, CheckedArgs, Op, TrackerArgs, args_schema
from ._result import ResultError, TrackerResult
from ._tracker import Tracker

_LIMITS: Final = Limits()
_OWN: Final = frozenset({"side_effect", "idempotent", "exclusive", "render"})
_SAYS: Final = {
    Op.COMMENT: "comment adds the comment 'body'",
    Op.TRANSITION: "transition moves it to the state 'toState'",
    Op.CLOSE: "close closes it, with an optional 'reason'",
    Op.LINK_PR: "link_pr links the pull request at the URL 'prURL' to it",
}


class TrackerWrite:
    """``tracker_write`` for use without a runtime: each call is answered with an envelope, whatever happens.

    Attributes:
        descriptor: The tool that does it.
    """

    def __init__(self, writer: object, *, policy: ToolPolicy | None = None, all_ops: bool = False) -> None:
        """Make the tool of a writer.

        Args:
            writer: As for ``tracker_write``.
            policy: What the shell does round one call; None: ``ToolPolicy()``.
            all_ops: As for ``tracker_write``.

        Raises:
            InvalidToolError: The writer can do nothing.
        """
        self.descriptor: ToolDescriptor[[TrackerArgs], TrackerResult] = tracker_write(
            writer, all_ops=all_ops, policy=ToolPolicy() if policy is None else policy
        )

    async def run(self, args: TrackerArgs, *, timeout: float | None = None) -> TrackerResult:
        """Do one operation.

        Args:
            args: What to do.
            timeout: The deadline of the whole call, in seconds from now. None: no deadline.

        Raises:
            InvalidToolError: ``timeout`` is no finite number of seconds ≥ 0.
        """
        arguments = {
            "op": args.op,
            "id": args.id,
            "body": args.body,
            "toState": args.to_state,
            "reason": args.reason,
            "prURL": args.pr_url,
        }
        return _answer(await self.descriptor.invoke(arguments, timeout=timeout), arguments)

    async def run_json(self, text: str | bytes, *, timeout: float | None = None) -> TrackerResult:
        """Do the one operation that a JSON object asks for.

        Args:
            text: The object, as a model sends it.
            timeout: The deadline of the whole call, in seconds from now. None: no deadline.

        Raises:
            InvalidToolError: ``timeout`` is no finite number of seconds ≥ 0.
        """
        return _answer(await self.descriptor.invoke(text, timeout=timeout), text)


def tracker_write(
    writer: object, *, all_ops: bool = False, **options: Unpack[ToolOptions]
) -> ToolDescriptor[[TrackerArgs], TrackerResult]:
    """Make the tool with which a model writes to a tracker.

    Writes on one issue run one after the other, in the order of their calls. An attempt whose effect is not known is
    followed by another only where the writer can be asked whether it has happened (``CommentFinder``, ``IssueReader``).

    Args:
        writer: What changes the tracker. What it can do is told by which of the writer protocols it satisfies.
        all_ops: Whether the schema offers all four operations; if not, those that the writer can do. Any other is
            answered with ``unsupported_op`` either way.
        **options: What else is to be said of the tool, as for ``describe``: a name where a catalog has two trackers,
            scopes, a policy.

    Raises:
        InvalidToolError: The writer can do nothing, or an option makes no sense.
    """
    if taken := _OWN & options.keys():
        msg = f"tracker_write: {', '.join(sorted(taken))}: it keeps writes safe, and cannot be chosen"
        raise InvalidToolError(msg)
    tracker = Tracker.of(writer)
    ops = list(Op) if all_ops else tracker.ops()
    name = options.get("name", NAME)

    async def write(args: CheckedArgs, /, context: ToolContext) -> TrackerResult:
        if type(args) is not CheckedArgs:  # a program's own arguments come as they are
            args = CheckedArgs.of(args)
        key = context.idempotency_key
        if context.attempt == 1 or not await tracker.is_done(args, key):
            await tracker.write(args, key)
        return TrackerResult(Outcome.SUCCEEDED, args.op, args.id)

    def group(args: TrackerArgs, /) -> str:
        return f"{name}:{args.id}"

    own: ToolOptions = {
        "name": name,
        "description": _describe(ops),
        **options,
        "side_effect": SideEffect.EXTERNAL,
        "idempotent": tracker.can_look,
        "exclusive": group,
        "render": _render,
    }
    descriptor = describe(write, **own)
    tool = attrs.evolve(descriptor.tool, args_schema=msgspec.json.encode(args_schema(ops)))
    schema = attrs.evolve(descriptor.schema, encode=_encode)
    return cast("ToolDescriptor[[TrackerArgs], TrackerResult]", attrs.evolve(descriptor, tool=tool, schema=schema))


def _encode(result: TrackerResult, _: bool) -> bytes:  # noqa: FBT001 - as the encoder that it stands for
    """Return a success as JSON. It is made here and nowhere else, so the check against its schema, 0.9 µs, is saved."""
    return _json.encode(result.to_wire())


def _describe(ops: list[Op]) -> str:
    return f"Change the issue 'id' of the tracker; 'op' says how: {'; '.join(_SAYS[op] for op in ops)}."


def _answer(result: ToolResult, arguments: Arguments) -> TrackerResult:
    if result.error is not None:
        return _failed(result.error, arguments)
    answer: TrackerResult = result.value
    return answer


def _render(failure: Failure, arguments: Arguments) -> str:
    return _failed(failure, arguments).to_json()


def _failed(failure: Failure, arguments: Arguments) -> TrackerResult:
    op, id = _sent(arguments)
    message = failure.message
    if failure.ambiguous:
        message += "; it may have happened all the same, so look at the issue before you send it again"
    return TrackerResult(Outcome.FAILED, op, id, ResultError(failure.category, message, op, failure.ambiguous))


def _sent(arguments: Arguments) -> tuple[str, str]:
    """Return operation and issue as they were sent; empty text for what cannot be read, or came twice."""
    document: object = arguments
    if isinstance(arguments, (str, bytes)):
        data = arguments if isinstance(arguments, bytes) else arguments.encode(errors="replace")
        if len(data) > _LIMITS.max_arguments_bytes or _json.is_deeper(data, _LIMITS.max_depth):
            return "", ""
        try:
            document = _json.parse(data).value
        except _json.DocumentError:
            return "", ""
    if not _json.is_mapping(document):
        return "", ""
    twice = document.duplicates if isinstance(document, _json.Doubled) else ()
    op, id = (document.get(name) if name not in twice else None for name in ("op", "id"))
    return _text(op), _text(id)


def _text(value: Any) -> str:
    return str(value) if isinstance(value, str) and not _json.has_surrogate(value) else ""
