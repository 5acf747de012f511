"""One call of a remote tool, and what becomes of its result."""

from typing import Any, Final, TypeAlias

from mcp import ClientSession
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError
from mcp.types import (
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    EmbeddedResource,
    InputRequiredResult,
    TextContent,
    TextResourceContents,
)
from pydantic import TypeAdapter, ValidationError

from ..._categories import Delivery, ErrorCategory
from ..._context import ToolContext
from ...errors import ToolError
from ._error import of_exchange, of_result
from ._sending import SENDING, Sending

Answer: TypeAlias = CallToolResult | InputRequiredResult

_ANSWER: Final[TypeAdapter[Answer]] = TypeAdapter(Answer)


async def call_tool(
    session: ClientSession, server: str, name: str, args: dict[str, Any], context: ToolContext, sending: Sending
) -> Any:
    """Call a tool and return its value: the structured content if there is any, else text, else the content blocks.

    A cancellation is sent to the server once, by the SDK, which waits at most five seconds for that and drops an answer
    that comes all the same.

    Args:
        session: An open session.
        server: The server's name, for messages.
        name: The tool's name there.
        args: The arguments.
        context: Told of the progress that the server reports.
        sending: Where it is noted how far the call came.

    Raises:
        ToolError: There is no value.
    """
    request = CallToolRequest(params=CallToolRequestParams(name=name, arguments=args))
    token = SENDING.set(sending)
    try:
        # Not call_tool(): it checks the result by rules of its own, and lists the tools when it knows no schema.
        answer = await session.send_request(request, _ANSWER, progress_callback=_reporter(context))
    except (MCPError, ValidationError) as exc:
        raise of_exchange(server, exc, sending) from exc
    finally:
        SENDING.reset(token)
    if isinstance(answer, InputRequiredResult):
        msg = f"the MCP server {server!r} asks the user for more, which a tool call cannot answer"
        raise ToolError(msg, category=ErrorCategory.UNSUPPORTED, delivery=Delivery.REFUSED)
    if answer.is_error:
        raise of_result(_text(answer), answer.structured_content)
    return _value(answer)


def _reporter(context: ToolContext) -> ProgressFnT:
    async def report(progress: float, total: float | None, message: str | None) -> None:
        try:
            context.report_progress(progress, total, message or "")
        except ValueError:  # not finite
            return

    return report


def _value(answer: CallToolResult) -> Any:
    if "structured_content" in answer.model_fields_set:
        return answer.structured_content
    if all(isinstance(block, TextContent) for block in answer.content):
        return _text(answer)
    return [block.model_dump(by_alias=True, mode="json", exclude_none=True) for block in answer.content]


def _text(answer: CallToolResult) -> str:
    """Return the text blocks and the texts of embedded resources, one below the other."""
    texts: list[str] = []
    for block in answer.content:
        if isinstance(block, TextContent):
            texts.append(block.text)
        elif isinstance(block, EmbeddedResource) and isinstance(block.resource, TextResourceContents):
            texts.append(block.resource.text)
    return "\n".join(texts)
