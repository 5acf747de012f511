"""What a tool may know about the call that it serves."""

import attrs


@attrs.frozen
class ToolContext:
    """The call that a tool serves. A parameter annotated with it is filled in and is no part of the schema.

    Attributes:
        call_id: The id of the call, as its sender wrote it.
        tool: The tool's name in the catalog.
        attempt: Which run of the function this is, from 1.
        deadline: When this attempt ends, in seconds on the event loop's clock (``anyio.current_time()``);
            ``math.inf`` if never.
    """

    call_id: str
    tool: str
    attempt: int
    deadline: float
