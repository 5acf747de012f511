"""A writer for a tracker over HTTP, in its two pure halves, and what it makes of three answers."""

import os

import anyio
import msgspec

import harbor_async as ha
from harbor_async.tracker import NAME, TrackerError, tracker_write
from harbor_async.tracker.writers.http import HTTPTransport, Request, Response, Secret, Transport


class Notes:
    """Writes notes to a tracker that keeps the key of a note beside it."""

    def __init__(self, url: str, *, token: str, transport: Transport) -> None:
        self.url = url
        self.headers = {"Authorization": Secret(token).prefixed("Bearer ")}
        self.transport = transport

    # --- build: an operation becomes a request ------------------------------------------------------------------------

    def build_note(self, id: str, body: str, key: str) -> Request:
        return Request.json("POST", f"{self.url}/issues/{int(id)}/notes", self.headers, {"body": body, "key": key})

    def build_notes(self, id: str) -> Request:
        return Request.json("GET", f"{self.url}/issues/{int(id)}/notes", self.headers)

    # --- classify: an answer is a success, or says what went wrong ----------------------------------------------------

    def classify(self, response: Response) -> TrackerError | None:
        if response.is_success:
            return None
        if response.status == 429:
            wait = float(response.headers.get("retry-after", "1"))
            return TrackerError("too many requests", category="rate_limited", delivery="refused", retry_after=wait)
        if response.status == 404:
            return TrackerError("no such issue, or no permission", category="not_found", delivery="refused")
        return TrackerError(f"status {response.status}", category="api_status", delivery="unknown")

    # --- the writer: one through the other ----------------------------------------------------------------------------

    async def comment(self, id: str, body: str, /, *, key: str) -> None:
        await self.ask(self.build_note(id, body, key))

    async def find_comment(self, id: str, /, *, key: str) -> bool:
        notes = msgspec.json.decode((await self.ask(self.build_notes(id))).body)
        return any(note["key"] == key for note in notes)

    async def ask(self, request: Request) -> Response:
        response = await self.transport.send(request)
        error = self.classify(response)
        if error is not None:
            raise error
        return response


class Canned:
    """Answers with what it was given: a transport that needs no network."""

    def __init__(self, *answers: Response) -> None:
        self.answers = list(answers)

    async def send(self, request: Request) -> Response:
        answer = self.answers.pop(0)
        print(f"{request.method} {request.url} -> {answer.status}")
        return answer


async def main() -> None:
    answers = Canned(Response(429, {"Retry-After": "0"}), Response(200, body=b"[]"), Response(201), Response(404))
    writer = Notes("https://notes.example.org", token=os.environ.get("NOTES_TOKEN", "none"), transport=answers)
    print(writer.build_notes("1").show())
    async with ha.Runtime(ha.Catalog([tracker_write(writer)])) as rt:
        for id in ("1", "404"):
            result = await rt.invoke(NAME, {"op": "comment", "id": id, "body": "Done."})
            print(result.content)


async def live(token: str) -> None:
    """Do the same over the network: the transport owns its connections, and closes them."""
    async with HTTPTransport(timeout=10.0, max_connections=4) as http:
        await Notes("https://notes.example.org", token=token, transport=http).comment("1", "Done.", key="7f3a")


if __name__ == "__main__":
    anyio.run(main)
