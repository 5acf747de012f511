"""A tracker in memory, a model's five calls, and what each becomes."""

import anyio
import attrs

import harbor_async as ha
from harbor_async.tracker import NAME, TrackerError, tracker_write

MOVES = {"open": ["in review"], "in review": ["open", "done"], "done": []}


@attrs.define
class Memory:
    """One issue. It can be commented on and moved, and be asked for a comment; it cannot be closed."""

    state: str = "open"
    comments: dict[str, str] = attrs.field(factory=dict)

    async def comment(self, id: str, body: str, *, key: str) -> None:
        self.comments[key] = body
        if len(self.comments) == 1:  # the first one arrives, but its answer does not come back
            raise ConnectionResetError("the server hung up")

    async def find_comment(self, id: str, *, key: str) -> bool:
        return key in self.comments

    async def transition(self, id: str, to_state: str, *, key: str) -> None:
        if to_state not in (self.state, *MOVES[self.state]):
            allowed = ", ".join(MOVES[self.state])
            raise TrackerError(
                f"{self.state} cannot become {to_state}, only {allowed}",
                category=ha.ErrorCategory.VALIDATION,
                delivery=ha.Delivery.REFUSED,
            )
        self.state = to_state


async def main() -> None:
    tracker = Memory()
    tool = tracker_write(tracker, policy=ha.ToolPolicy(timeout=5, wait=ha.Backoff(initial=0)))
    async with ha.Runtime(ha.Catalog([tool])) as rt:
        for arguments in [
            '{"op": "comment", "id": "T-1", "body": "I look into it."}',
            '{"op": "transition", "id": "T-1", "toState": "done"}',
            '{"op": "transition", "id": "T-1", "toState": "in review"}',
            '{"op": "close", "id": "T-1"}',
            '{"op": "comment", "id": "T-1"}',
        ]:
            result = await rt.invoke(NAME, arguments)
            print(f"{result.content} after {result.attempts}")
    print(f"{tracker.state}, {len(tracker.comments)} comment")
    print(tool.tool.description)


if __name__ == "__main__":
    anyio.run(main)
