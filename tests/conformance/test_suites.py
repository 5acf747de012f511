"""The conformance suites that users run, on the things of the house."""

from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from examples.agent_backend import Report
from harbor_async import Catalog
from harbor_async.testing import CatalogConformance, RecordingSink, SinkConformance, WriterConformance
from harbor_async.tracker.writers import SQLiteTracker


class TestCatalog(CatalogConformance):
    def make(self):
        return Catalog()


class TestRecordingSink(SinkConformance):
    def make(self):
        return RecordingSink()


class TestReportOfTheExample(SinkConformance):
    def make(self):
        return Report()


class TestSQLiteTracker(WriterConformance):
    state = "in_progress"

    @asynccontextmanager
    async def make(self):
        with TemporaryDirectory() as folder:
            await SQLiteTracker.create(Path(folder) / "issues.db")
            async with SQLiteTracker(Path(folder) / "issues.db") as tracker:
                await tracker.add("T-1", "It leaks")
                yield tracker
