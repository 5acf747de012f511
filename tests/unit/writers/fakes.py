"""Trackers in memory that speak as the hosted ones do, and can fail as they do.

Their answers are written from the published descriptions of each API, and hold what the writers might read and some
more. A fake is a ``Transport``; ``serve`` puts it behind real HTTP.
"""

import json
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import attrs

from harbor_async.tracker.writers.gitea import Gitea
from harbor_async.tracker.writers.github import GitHub
from harbor_async.tracker.writers.gitlab import GitLab
from harbor_async.tracker.writers.http import Request, Response
from harbor_async.tracker.writers.jira import Jira
from harbor_async.tracker.writers.linear import Linear

TOKEN = "tok-Zx81-never-to-be-seen"
ME = "octo-bot"
DATE = "Mon, 30 Nov 2026 12:00:00 GMT"


def answer(status: int, document: Any = None, headers: dict[str, str] | None = None) -> Response:
    body = b"" if document is None else json.dumps(document).encode()
    return Response(status, {"Content-Type": "application/json", "Date": DATE, **(headers or {})}, body)


@attrs.define
class Fake:
    """What all of them have.

    Attributes:
        strike: What a request that is struck is answered with, instead of being done, or after it.
        point: When it strikes: ``before`` the effect, or ``after`` it.
        times: How many of the next requests it strikes.
        reads: Whether requests that only read are struck, too.
        requests: All that came.
        comments: Author and text of each comment, in their order.
        links: What is linked, where the tracker has links.
        state: The name of the state that the issue is in.
    """

    strike: Callable[[], Any] | None = None
    point: str = "before"
    times: int = 0
    reads: bool = False
    requests: list[Request] = attrs.field(factory=list)
    comments: list[dict[str, Any]] = attrs.field(factory=list)
    links: dict[str, str] = attrs.field(factory=dict)
    state: str = "open"
    name = ""
    start = "open"
    issue = "1"

    def __attrs_post_init__(self) -> None:
        self.state = self.start

    async def send(self, request: Request) -> Response:
        await anyio.lowlevel.checkpoint()
        self.requests.append(request)
        is_struck = self.times > 0 and (self.reads or not request.is_read)
        if is_struck:
            self.times -= 1
        if is_struck and self.point == "before":
            return await self.hit()
        response = self.do(request)
        return await self.hit() if is_struck else response

    async def hit(self) -> Response:
        response = self.strike()
        return await response if hasattr(response, "__await__") else response

    def do(self, request: Request) -> Response:
        if TOKEN not in str(self.authorization(request.reveal_headers())):
            return self.unauthorized()
        parts = urlsplit(request.url)
        document = json.loads(request.body) if request.body else None
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        return self.route(request.method, parts.path, query, document)

    def authorization(self, headers: dict[str, str]) -> str:
        return headers.get("Authorization", "")

    def unauthorized(self) -> Response:
        return answer(401, {"message": "Bad credentials"})

    def route(self, method: str, path: str, query: dict[str, str], document: Any) -> Response:
        raise NotImplementedError

    def add(self, text: str, author: str = ME, **more: Any) -> dict[str, Any]:
        comment = {"id": 1000 + len(self.comments), "author": author, "text": text, **more}
        self.comments.append(comment)
        return comment

    def texts(self) -> list[str]:
        """Return what a reader sees of the comments: without what Markdown hides."""
        return [re.sub(r"\s*<!--.*?-->", "", comment["text"], flags=re.DOTALL) for comment in self.comments]


class FakeGitHub(Fake):
    prefix = ""
    paged = True
    reason = None

    def writer(self, **options: Any) -> GitHub:
        return GitHub("octocat/hello", token=TOKEN, **{"transport": self, **options})

    def route(self, method: str, path: str, query: dict[str, str], document: Any) -> Response:
        path = path.removeprefix(self.prefix)
        if (method, path) == ("GET", "/user"):
            return answer(200, {"login": ME, "id": 1})
        if path not in ("/repos/octocat/hello/issues/1", "/repos/octocat/hello/issues/1/comments"):
            return self.missing()
        if method == "GET" and path.endswith("/comments"):
            return self.listing(query)
        if method == "POST" and path.endswith("/comments"):
            return answer(201, self.shown(self.add(document["body"])))
        if method == "PATCH":
            # Source: GitHub's description; the reason is passed over unless the state changes.
            if document["state"] != self.state:
                self.state, self.reason = document["state"], document.get("state_reason")
            return answer(201 if self.prefix else 200, self.issue_document())
        return answer(200, self.issue_document())

    def listing(self, query: dict[str, str]) -> Response:
        if not self.paged:
            return answer(200, [self.shown(comment) for comment in self.comments])
        size, page = int(query.get("per_page", 30)), int(query.get("page", 1))
        last = max(1, -(-len(self.comments) // size))
        ends = [
            f'<https://api.github.com/x?page={number}>; rel="{rel}"' for number, rel in ((2, "next"), (last, "last"))
        ]
        link = ", ".join(ends)
        found = self.comments[(page - 1) * size : page * size]
        return answer(200, [self.shown(it) for it in found], {"Link": link} if page < last else {})

    def missing(self) -> Response:
        return answer(
            404, {"message": "Not Found", "documentation_url": "https://docs.github.com/rest", "status": "404"}
        )

    def shown(self, comment: dict[str, Any]) -> dict[str, Any]:
        return {"id": comment["id"], "body": comment["text"], "user": {"login": comment["author"], "id": 1}}

    def issue_document(self) -> dict[str, Any]:
        return {
            "id": 77,
            "number": 1,
            "title": "It leaks",
            "state": self.state,
            "state_reason": self.reason,
            "comments": len(self.comments),
        }


class FakeGitea(FakeGitHub):
    prefix = "/api/v1"
    paged = False

    def writer(self, **options: Any) -> Gitea:
        url = options.pop("url", "https://git.example.org")
        return Gitea(url, "octocat/hello", token=TOKEN, **{"transport": self, **options})

    def authorization(self, headers: dict[str, str]) -> str:
        scheme, _, token = headers["Authorization"].partition(" ")
        return token if scheme == "token" else ""

    def missing(self) -> Response:
        return answer(404, {"message": "issue does not exist [id: 0, repo_id: 1, index: 404]", "url": "", "errors": []})


class FakeGitLab(Fake):
    start = "opened"

    def writer(self, **options: Any) -> GitLab:
        return GitLab("group/sub/hello", token=TOKEN, **{"transport": self, **options})

    def unauthorized(self) -> Response:
        return answer(401, {"message": "401 Unauthorized"})

    def route(self, method: str, path: str, query: dict[str, str], document: Any) -> Response:
        if path == "/api/v4/user":
            return answer(200, {"id": 1, "username": ME})
        root = "/api/v4/projects/group%2Fsub%2Fhello/issues/1"
        if path not in (root, f"{root}/notes"):
            return answer(404, {"message": "404 Issue Not Found"})
        if path == root:
            if method == "PUT":
                self.state = {"close": "closed", "reopen": "opened"}[document["state_event"]]
            return answer(200, {"id": 77, "iid": 1, "title": "It leaks", "state": self.state})
        if method == "POST":
            if re.search(r"^[ \t]*/close", document["body"], re.MULTILINE):  # a quick action: GitLab obeys it
                self.state = "closed"
                return answer(202, {"commands_changes": {"state_event": "close"}, "summary": ["Closed this issue."]})
            return answer(201, self.shown(self.add(document["body"])))
        size, page = int(query["per_page"]), int(query["page"])
        newest = self.comments[::-1][(page - 1) * size : page * size]
        return answer(200, [self.shown(it) for it in newest])

    def shown(self, comment: dict[str, Any]) -> dict[str, Any]:
        author = {"id": 1, "username": comment["author"]}
        return {"id": comment["id"], "body": comment["text"], "author": author, "system": comment.get("system", False)}


class FakeJira(Fake):
    start = "To Do"
    issue = "T-1"
    workflow = {
        "To Do": [("11", "Start", "In Progress"), ("21", "Finish", "Done")],
        "In Progress": [("31", "Park", "On Hold"), ("41", "Finish", "Done")],
        "On Hold": [("51", "Resume", "In Progress"), ("61", "Finish", "Done")],
        "Done": [("71", "Reopen", "To Do")],
    }
    obeys = True
    resolutions = ()
    resolution = None

    def writer(self, **options: Any) -> Jira:
        url = options.pop("url", "https://example.atlassian.net")
        return Jira(url, token=TOKEN, **{"transport": self, **options})

    def unauthorized(self) -> Response:
        return answer(401, {"message": "Client must be authenticated to access this resource.", "status-code": 401})

    def route(self, method: str, path: str, query: dict[str, str], document: Any) -> Response:
        path = path.removeprefix("/rest/api/3")
        if path == "/myself":
            return answer(200, {"accountId": ME, "displayName": "Octo"})
        if path == "/comment/list":
            assert query == {"expand": "properties"}
            found = [
                self.shown(it) | {"properties": it["properties"]} for it in self.comments if it["id"] in document["ids"]
            ]
            return answer(200, {"values": found, "isLast": True, "total": len(found)})
        match = re.fullmatch(r"/issue/T-1(|/comment|/transitions|/remotelink)", path)
        if match is None:
            return answer(
                404, {"errorMessages": ["Issue does not exist or you do not have permission to see it."], "errors": {}}
            )
        if match[1] == "/comment":
            return self.comment(method, query, document)
        if match[1] == "/transitions":
            return self.move(document)
        if match[1] == "/remotelink":
            return self.remote(method, document)
        return answer(200, self.issue_document())

    def comment(self, method: str, query: dict[str, str], document: Any) -> Response:
        if method == "POST":
            return answer(201, self.shown(self.add(plain(document["body"]), properties=document["properties"])))
        assert query["orderBy"] == "-created"
        start, size = int(query["startAt"]), int(query["maxResults"])
        newest = self.comments[::-1][start : start + size]
        return answer(
            200, {"comments": [self.shown(it) for it in newest], "total": len(self.comments), "startAt": start}
        )

    def move(self, document: Any) -> Response:
        targets = {id: target for id, _, target in self.workflow[self.state]}
        target = targets.get(document["transition"]["id"])
        if target is None:
            return answer(
                400,
                {
                    "errorMessages": ["It seems that you have tried to perform an illegal workflow operation."],
                    "errors": {},
                },
            )
        if self.resolutions and "resolution" not in document.get("fields", {}):
            return answer(400, {"errorMessages": [], "errors": {"resolution": "Resolution is required."}})
        if self.obeys:
            self.state, self.resolution = target, document.get("fields", {}).get("resolution", {}).get("name")
        return answer(204)

    def remote(self, method: str, document: Any) -> Response:
        if method == "GET":
            return answer(
                200, [{"id": 1, "globalId": id, "object": {"url": url, "title": url}} for id, url in self.links.items()]
            )
        is_new = document["globalId"] not in self.links
        self.links[document["globalId"]] = document["object"]["url"]
        return answer(201 if is_new else 200, {"id": 10000, "self": "https://example.atlassian.net/x"})

    def issue_document(self) -> dict[str, Any]:
        fields = {}
        if self.resolutions:
            values = [{"id": str(number), "name": name} for number, name in enumerate(self.resolutions)]
            fields = {
                "resolution": {
                    "required": True,
                    "hasDefaultValue": False,
                    "name": "Resolution",
                    "allowedValues": values,
                }
            }
        moves = [
            {"id": id, "name": name, "to": status(target), "fields": fields if target == "Done" else {}}
            for id, name, target in self.workflow[self.state]
        ]
        return {
            "id": "10001",
            "key": "T-1",
            "fields": {"summary": "It leaks", "status": status(self.state)},
            "transitions": moves,
        }

    def shown(self, comment: dict[str, Any]) -> dict[str, Any]:
        return {
            "id": str(comment["id"]),
            "author": {"accountId": comment["author"]},
            "body": {"type": "doc", "version": 1},
        }


def status(name: str) -> dict[str, Any]:
    category = {"To Do": "new", "Done": "done"}.get(name, "indeterminate")
    return {"id": "1", "name": name, "statusCategory": {"id": 2, "key": category}}


def plain(document: Any) -> str:
    """Return the text of a document in the Atlassian Document Format, which is refused if it is none."""
    assert (document["type"], document["version"]) == ("doc", 1)
    paragraphs = []
    for paragraph in document["content"]:
        assert paragraph["type"] == "paragraph"
        for node in paragraph["content"]:
            assert node["type"] == "hardBreak" or (node["type"] == "text" and node["text"])
        paragraphs.append("".join(node.get("text", "\n") for node in paragraph["content"]))
    return "\n\n".join(paragraphs)


class FakeLinear(Fake):
    start = "s-todo"
    issue = "ENG-1"
    uuid = "5d6e2d2c-0a7c-4a39-9f9e-2f8e8d3c1a10"
    states = (
        ("s-back", "Backlog", "backlog", 0),
        ("s-todo", "Todo", "unstarted", 1),
        ("s-done", "Done", "completed", 3),
        ("s-rev", "In Review", "started", 2),
        ("s-can", "Canceled", "canceled", 4),
    )
    other_team = (("o-done", "Done", "completed", 1),)
    obeys = True

    def writer(self, **options: Any) -> Linear:
        return Linear(token=TOKEN, **{"transport": self, **options})

    def unauthorized(self) -> Response:
        return failure(
            "Authentication required, not authenticated", "AUTHENTICATION_ERROR", "authentication error", 401
        )

    def route(self, method: str, path: str, query: dict[str, str], document: Any) -> Response:
        assert (method, path) == ("POST", "/graphql")
        text, given = document["query"], document["variables"]
        mutation = re.search(r"mutation .*?\{\s*(\w+)", text)
        if mutation is None:
            if given["id"] not in ("ENG-1", self.uuid):
                return self.missing("issue")
            if "comments(" in text:
                nodes = [{"id": it["id"]} for it in self.comments if it["id"] == given["comment"]]
                return answer(200, {"data": {"issue": {"comments": {"nodes": nodes}}}})
            return answer(200, {"data": {"issue": self.issue_document()}})
        return getattr(self, mutation[1])(given)

    def missing(self, name: str) -> Response:
        return failure(
            "Entity not found: Issue", "INPUT_ERROR", "invalid input", 400, "Could not find referenced Issue.", name
        )

    def commentCreate(self, given: Any) -> Response:  # noqa: N802 - Linear's name
        comment = given["input"]
        assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", comment["id"])
        if comment["issueId"] != self.uuid:
            return self.missing("commentCreate")
        if any(it["id"] == comment["id"] for it in self.comments):
            return failure("Argument Validation Error", "INPUT_ERROR", "invalid input", 400, "id must be unique")
        self.comments.append({"id": comment["id"], "author": ME, "text": comment["body"]})
        return answer(200, {"data": {"commentCreate": {"success": True}}})

    def issueUpdate(self, given: Any) -> Response:  # noqa: N802 - as above
        known = {id for id, *_ in self.states}
        if given["state"] not in known:
            return failure(
                "Argument Validation Error", "INPUT_ERROR", "invalid input", 400, "stateId is of another team"
            )
        if self.obeys:
            self.state = given["state"]
        return answer(200, {"data": {"issueUpdate": {"success": True, "issue": {"state": self.state_document()}}}})

    def attachmentCreate(self, given: Any) -> Response:  # noqa: N802 - as above
        self.links.setdefault(given["input"]["url"], given["input"]["title"])
        return answer(200, {"data": {"attachmentCreate": {"success": True}}})

    def state_document(self) -> dict[str, Any]:
        return next(state_of(it) for it in self.states if it[0] == self.state)

    def issue_document(self) -> dict[str, Any]:
        return {
            "id": self.uuid,
            "identifier": "ENG-1",
            "title": "It leaks",
            "state": self.state_document(),
            "team": {"states": {"nodes": [state_of(it) for it in self.states]}},
            "attachments": {"nodes": [{"url": url} for url in self.links]},
        }


def state_of(state: tuple[str, str, str, float]) -> dict[str, Any]:
    return dict(zip(("id", "name", "type", "position"), state, strict=True))


def failure(message: str, code: str, kind: str, status: int, told: str = "", path: str = "") -> Response:
    """Return an error as Linear writes it: in an answer of status 200 or 400."""
    extensions = {"type": kind, "code": code, "statusCode": status, "userError": True, "userPresentableMessage": told}
    error = {"message": message, "path": [path], "extensions": extensions}
    return answer(200 if kind == "invalid input" else 400, {"errors": [error], "data": None})


FAKES: dict[str, type[Fake]] = {
    "github": FakeGitHub,
    "gitlab": FakeGitLab,
    "jira": FakeJira,
    "linear": FakeLinear,
    "gitea": FakeGitea,
}
for _name, _fake in FAKES.items():
    _fake.name = _name
