"""Runs the official conformance suite against the server: ``python -m tests.e2e.mcp.conformance NODE FOLDER``.

``FOLDER`` holds ``node_modules`` with ``@modelcontextprotocol/conformance``. Each scenario that a tool server can pass
must pass, on both event loops and in both generations of the protocol; those that are expected to fail are about what
a catalog of tools has not.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
REVISIONS = ["2025-11-25", "2026-07-28"]
RESOURCES = ["resources-list", "resources-read-text", "resources-read-binary", "resources-templates-read"]
PROMPTS = [
    *("prompts-list", "prompts-get-simple", "prompts-get-with-args"),
    *("prompts-get-embedded-resource", "prompts-get-with-image"),
]
NOT_OURS = {
    "2025-11-25": [
        *(RESOURCES + PROMPTS),
        *("resources-subscribe", "resources-unsubscribe", "completion-complete"),
        *("logging-set-level", "tools-call-with-logging"),
        *("tools-call-sampling", "tools-call-elicitation"),
        *("elicitation-sep1034-defaults", "elicitation-sep1330-enums"),
    ],
    "2026-07-28": [
        *(RESOURCES + PROMPTS),
        *("completion-complete", "sep-2164-resource-not-found"),
        "server-stateless",  # four of its 28 checks want tools that ask for sampling, elicitation and logging
        "caching",  # three of its seven checks are of resources and prompts
        *(
            f"input-required-result-{what}"
            for what in (
                *("basic-elicitation", "basic-sampling", "basic-list-roots", "request-state"),
                *("multiple-input-requests", "multi-round", "non-tool-request", "result-type"),
                *("tampered-state", "capability-check", "missing-input-response", "ignore-extra-params"),
            )
        ),
    ],
}
"""Scenarios of what a server of tools has not: resources, prompts, logging, completion, sampling, elicitation.

Those of the extension for tasks run, too, but do not count."""


def run(node: str, folder: Path, backend: str) -> bool:
    """Serve the catalog and run the suite; say whether all is as expected."""
    command = [sys.executable, "-m", "harbor_async.cli", "serve", str(HERE / "catalog.py")]
    server = subprocess.Popen(
        [*command, "--http", "127.0.0.1:0", "--backend", backend], stderr=subprocess.PIPE, text=True
    )
    try:
        said = next((line for line in server.stderr if " tools at " in line), "")
        url = re.search(r"http://\S+", said).group()
        suite = folder / "node_modules/@modelcontextprotocol/conformance/dist/index.js"
        passed = [run_suite([node, str(suite)], url, backend, revision) for revision in REVISIONS]
        return all(passed)
    finally:
        server.terminate()
        if server.wait(30):
            sys.exit(f"{backend}: the server did not end as it should")


def run_suite(command: list[str], url: str, backend: str, revision: str) -> bool:
    """Run the suite of one revision; it fails when a scenario does that should not, and the other way round."""
    with tempfile.TemporaryDirectory() as folder:
        expected = Path(folder) / "expected.yml"
        expected.write_text("server:\n" + "".join(f"  - {name}\n" for name in NOT_OURS[revision]))
        ended = subprocess.run(
            [*command, "server", "--url", url, "--requirements", revision, "--expected-failures", str(expected)],
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
    summary = ended.stdout[ended.stdout.find("=== SUMMARY") :]
    sys.stdout.write(
        f"--- {backend}, {revision}: {'FAILED' if ended.returncode else 'passed'}\n{summary}\n{ended.stderr}\n"
    )
    return ended.returncode == 0


if __name__ == "__main__":
    results = [run(sys.argv[1], Path(sys.argv[2]), backend) for backend in ("asyncio", "trio")]
    sys.exit(not all(results))
