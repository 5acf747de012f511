"""The conformance suite, on each writer and a fake of its tracker; and on one of them over real HTTP."""

from contextlib import asynccontextmanager

from harbor_async.testing import WriterConformance
from harbor_async.tracker.writers.http import HTTPTransport
from tests.unit.writers.fakes import FakeGitea, FakeGitHub, FakeGitLab, FakeJira, FakeLinear
from tests.unit.writers.served import serve
from tests.unit.writers.test_transport import TLS


class TestGitHub(WriterConformance):
    issue, state, missing = "1", "closed", "404"

    def make(self):
        return FakeGitHub().writer()


class TestGitLab(WriterConformance):
    issue, state, missing = "1", "closed", "404"

    def make(self):
        return FakeGitLab().writer()


class TestGitea(WriterConformance):
    issue, state, missing = "1", "closed", "404"

    def make(self):
        return FakeGitea().writer()


class TestJira(WriterConformance):
    issue, state, missing = "T-1", "In Progress", "T-404"

    def make(self):
        return FakeJira().writer()


class TestLinear(WriterConformance):
    issue, state, missing = "ENG-1", "In Review", "ENG-404"

    def make(self):
        return FakeLinear().writer()


class TestGitLabOverHTTP(WriterConformance):
    issue, state, missing = "1", "closed", "404"

    @asynccontextmanager
    async def make(self):
        fake = FakeGitLab()
        async with serve(fake) as server, HTTPTransport(tls=TLS) as http:
            yield fake.writer(url=server.url, transport=http)
