"""A writer, by what it can do: one operation becomes one write, or a look whether it has happened."""

from collections.abc import Awaitable
from typing import Self

import attrs

from .._categories import Delivery, ErrorCategory
from ..errors import InvalidArgumentsError, InvalidToolError, Problem, ToolError
from ._args import FIELDS, Op, TrackerArgs, trim
from ._writer import CloseWriter, CommentFinder, CommentWriter, IssueReader, LinkPRWriter, TransitionWriter


@attrs.frozen
class Tracker:
    """What a writer can do; None for what it cannot.

    Asked once: asking a protocol whether an object satisfies it costs more than all the rest of a call.
    """

    commenter: CommentWriter | None
    mover: TransitionWriter | None
    closer: CloseWriter | None
    linker: LinkPRWriter | None
    finder: CommentFinder | None
    reader: IssueReader | None

    @classmethod
    def of(cls, writer: object) -> Self:
        """Look at what ``writer`` can do.

        Raises:
            InvalidToolError: It can do nothing.
        """
        tracker = cls(
            writer if isinstance(writer, CommentWriter) else None,
            writer if isinstance(writer, TransitionWriter) else None,
            writer if isinstance(writer, CloseWriter) else None,
            writer if isinstance(writer, LinkPRWriter) else None,
            writer if isinstance(writer, CommentFinder) else None,
            writer if isinstance(writer, IssueReader) else None,
        )
        if not tracker.ops():
            kind = type(writer).__name__
            msg = f"expected a writer with an async method comment, transition, close or link_pr; got {kind}"
            raise InvalidToolError(msg)
        return tracker

    def ops(self) -> list[Op]:
        """Return what can be done."""
        writers = {
            Op.COMMENT: self.commenter,
            Op.TRANSITION: self.mover,
            Op.CLOSE: self.closer,
            Op.LINK_PR: self.linker,
        }
        return [op for op, writer in writers.items() if writer is not None]

    def write(self, args: TrackerArgs, key: str) -> Awaitable[None]:
        """Begin an operation.

        Raises:
            ToolError: The tracker cannot do it.
            InvalidArgumentsError: Its field is missing or blank.
        """
        op, id = args.op, args.id
        if op is Op.CLOSE and self.closer is not None:
            return self.closer.close(id, args.reason or "", key=key)
        if op is Op.COMMENT and self.commenter is not None:
            _require(op, trim(args.body or ""))
            return self.commenter.comment(id, args.body or "", key=key)
        if op is Op.TRANSITION and self.mover is not None:
            return self.mover.transition(id, _require(op, trim(args.to_state or "")), key=key)
        if op is Op.LINK_PR and self.linker is not None:
            return self.linker.link_pr(id, _require(op, trim(args.pr_url or "")), key=key)
        message = f"this tracker cannot {op.value}; it can {', '.join(self.ops())}"
        raise ToolError(message, category=ErrorCategory.UNSUPPORTED_OP, delivery=Delivery.NOT_SENT)

    def can_look(self, args: TrackerArgs) -> bool:
        """Say whether ``is_done`` can tell."""
        return (self.finder if args.op == Op.COMMENT else self.reader) is not None

    async def is_done(self, args: TrackerArgs, key: str) -> bool:
        """Say whether the effect of an operation is there; False where the tracker cannot tell."""
        if args.op is Op.COMMENT:
            return self.finder is not None and await self.finder.find_comment(args.id, key=key)
        if self.reader is None:
            return False
        issue = await self.reader.get(args.id)
        if args.op is Op.CLOSE:
            return issue.is_closed
        if args.op is Op.TRANSITION:
            return issue.state == trim(args.to_state or "")
        return trim(args.pr_url or "") in issue.links


def _require(op: Op, text: str) -> str:
    if text:
        return text
    field = FIELDS[op]
    problem = Problem(f"/{field}", "missing", f"{op.value} needs {field!r}, which must not be blank")
    raise InvalidArgumentsError([problem])
