"""Who may ask an MCP server over HTTP, and what they see."""

from harbor_async import Catalog, Identity, Limits, ToolContext, describe
from tests.unit.serving.wire import LEGACY, MODERN, Web, call, request, text, web


async def who(context: ToolContext) -> str:
    """Say who asks."""
    return context.identity.user


async def secret() -> str:
    """Tell."""
    return "s"


TOOLS = [describe(who), describe(secret, scopes={"admin"})]
PEOPLE = {
    "t-ann": Identity("acme", "ann", "s", scopes={"admin"}),
    "t-bob": Identity("acme", "bob", "s"),
}


async def authenticate(token: str) -> Identity | None:
    return PEOPLE.get(token)


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


async def test_the_identity_is_that_of_the_token():
    """A call is made on behalf of whom the token names; what it has no scopes for is neither listed nor run."""
    seen = {}
    async with web(Catalog(TOOLS), authenticate=authenticate, headers=bearer("t-ann")) as (_, state):
        for token in PEOPLE:
            client = Web(state.port, MODERN, **bearer(token))
            async with client.http:
                (listed,) = await client.ask(request(MODERN, 1, "tools/list"))
                (named,) = await client.ask(call(MODERN, 2, "who"))
                (told,) = await client.ask(call(MODERN, 3, "secret"))
            tools = [tool["name"] for tool in listed["result"]["tools"]]
            seen[token] = (tools, text(named), told["result"]["isError"])
    assert {"t-ann": (["secret", "who"], "ann", False), "t-bob": (["who"], "bob", True)} == seen


async def test_no_valid_token_is_401():
    """Without a token, with a wrong one, in another scheme and with half a header; the header says what is expected."""
    answers = []
    async with web(Catalog(TOOLS), authenticate=authenticate, headers=bearer("t-ann")) as (_, state):
        for headers in ({}, bearer("x"), {"authorization": "Basic t-ann"}, {"authorization": "Bearer"}):
            client = Web(state.port, MODERN, **headers)
            async with client.http:
                answer = await client.post(call(MODERN, 1, "who"))
            answers.append((answer.status_code, answer.headers["www-authenticate"]))
    plain, invalid = (401, "Bearer"), (401, 'Bearer error="invalid_token"')
    assert [plain, invalid, plain, plain] == answers


async def test_a_session_is_its_openers():
    """Another token cannot use a session, even when it knows its id."""
    async with web(Catalog(TOOLS), LEGACY, authenticate=authenticate, headers=bearer("t-ann")) as (client, _):
        (own,) = await client.ask(call(LEGACY, 1, "who"))
        client.headers |= bearer("t-bob")
        answer = await client.post(call(LEGACY, 2, "who"))
    assert ("ann", 404) == (text(own), answer.status_code)


async def test_host_and_origin_are_checked():
    """A Host or Origin that is not this machine's is refused, so that no web page can reach the server by DNS."""
    async with web(Catalog(TOOLS)) as (client, state):
        codes = []
        for name, value in (
            ("host", "evil.example.com"),
            ("origin", "http://evil.example.com"),
            ("origin", f"http://localhost:{state.port}"),
        ):
            headers = client.head(request(MODERN, 1, "tools/list")) | {name: value}
            answer = await client.http.post(client.url, json=request(MODERN, 1, "tools/list"), headers=headers)
            codes.append(answer.status_code)
    assert [421, 403, 200] == codes


async def test_other_hosts_can_be_allowed():
    """``allowed_hosts`` are answered with any port and with none, and their origins with them; then no others are."""
    async with web(Catalog(TOOLS), headers={"host": "tools.example"}, allowed_hosts=["tools.example"]) as (client, _):
        codes = []
        for extra in ({"origin": "https://tools.example:8"}, {"host": "tools.example:80"}, {"host": "localhost"}):
            message = request(MODERN, 1, "tools/list")
            answer = await client.http.post(client.url, json=message, headers=client.head(message) | extra)
            codes.append(answer.status_code)
    assert [200, 200, 421] == codes


async def test_a_body_is_bounded():
    """A message of more than four times the longest arguments is refused before it is read as JSON."""
    async with web(Catalog(TOOLS), limits=Limits(max_arguments_bytes=1000)) as (client, _):
        answer = await client.post(call(MODERN, 1, "who", text="x" * 5000))
    assert 413 == answer.status_code
