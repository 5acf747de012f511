"""Real trackers, started on the loopback interface."""

import base64
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from itertools import count
from pathlib import Path

import attrs

from .needs import give_up, need_command

HERE = Path(__file__).parent
MEMORY = Path("/dev/shm")
PASSWORD = "a-password-of-tests"
NUMBERS = count(1)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def running(command, is_up, log, **options):
    """Run a server, from when it answers."""
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, **options)
    try:
        end = time.monotonic() + 120
        while not is_up():
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"the server did not start: {log.read_text()[-2000:]}")
            time.sleep(0.05)
        yield process
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(10)
        process.kill()
        process.wait()


def ask(method, url, headers, body=None):
    """Send a request and return the document that is answered, from the tests' own side."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(
        url, data, {"Content-Type": "application/json", "Accept": "application/json", **headers}, method=method
    )
    with urllib.request.urlopen(request, timeout=15) as answer:
        text = answer.read()
    return json.loads(text) if text.strip() else None


def answers(url):
    """Say whether there is a server at all."""
    try:
        urllib.request.urlopen(url, timeout=15).close()
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    return True


@attrs.frozen
class RoundupServer:
    """A Roundup with two trackers, ``main`` and ``limited``, of which the second one takes five calls a minute."""

    origin: str

    def url(self, tracker="main"):
        return f"{self.origin}/{tracker}"

    def ask(self, method, path, body=None, tracker="main", **headers):
        """Send a request as the administrator."""
        pair = base64.b64encode(f"admin:{PASSWORD}".encode()).decode()
        headers |= {"Authorization": f"Basic {pair}", "Origin": self.origin, "X-Requested-With": "tests"}
        return ask(method, f"{self.url(tracker)}/rest/data/{path}", headers, body)["data"]

    def issue(self):
        """Return the number of a new issue."""
        return self.ask("POST", "issue", {"title": "It leaks"})["id"]

    def change(self, issue, **fields):
        """Change an issue, as it is now."""
        tag = self.ask("GET", f"issue/{issue}")["@etag"]
        self.ask("PATCH", f"issue/{issue}", {"@op": "replace", **fields}, **{"If-Match": tag})

    def user(self, roles="User", tracker="main"):
        """Return the name of a new user."""
        name = f"user-{os.getpid()}-{next(NUMBERS)}"
        body = {"username": name, "password": PASSWORD, "roles": roles, "address": f"{name}@example.org"}
        self.ask("POST", "user", body, tracker)
        return name

    def messages(self, issue):
        """Return the numbers of the messages of an issue."""
        return [message["id"] for message in self.ask("GET", f"issue/{issue}")["attributes"]["messages"]]

    def texts(self, issue):
        """Return the first lines of the messages of an issue."""
        there = set(self.messages(issue))
        found = self.ask("GET", "msg?@fields=summary&@page_size=5000")["collection"]
        return [message["summary"] for message in found if message["id"] in there]


@contextmanager
def roundup():
    """Run Roundup."""
    package = find_spec("roundup")
    if package is None:
        give_up("the package roundup is not installed")
    port = free_port()
    origin = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryDirectory(prefix="roundup-", dir=MEMORY if MEMORY.is_dir() else None) as name:
        folder = Path(name)
        make_roundup(folder, "main", origin)
        make_roundup(folder, "limited", origin, api_calls_per_interval=5, api_interval_in_sec=60)
        # With threads, for a server that forks would need its own way to end. HTTP/1.0, for on a connection that is
        # kept its head and body go in two segments, and the second waits 40 ms until the first is acknowledged.
        command = [sys.executable, "-m", "roundup.scripts.roundup_server", "-n", "127.0.0.1", "-p", str(port)]
        command += ["-t", "thread", "-V", "HTTP/1.0"]
        # Whoever it runs as need not be able to read this checkout.
        shutil.copytree(Path(package.origin).parent, folder / "lib" / "roundup")
        folder.chmod(0o755)
        if os.geteuid() == 0:
            subprocess.run(["chown", "-R", "nobody:nogroup", name], check=True)
            command += ["-u", "nobody", "-g", "nogroup"]
        command += [f"main={folder / 'main'}", f"limited={folder / 'limited'}"]
        up = f"{origin}/main/rest/data/status"
        environment = {**os.environ, "PYTHONPATH": str(folder / "lib")}
        with running(command, lambda: answers(up), folder / "server.log", cwd=folder, env=environment):
            yield RoundupServer(origin)


def make_roundup(folder, name, origin, **limits):
    """Make a tracker of the classic template, with a rule of ours."""
    home = folder / name
    admin = [sys.executable, "-m", "roundup.scripts.roundup_admin", "-i", str(home)]
    subprocess.run([*admin, "install", "classic", "sqlite"], check=True, capture_output=True)
    shutil.copy(HERE / "detectors.py", home / "detectors" / "moves.py")
    config = home / "config.ini"
    text = config.read_text()
    values = {
        "web": f"{origin}/{name}/",
        "domain": "localhost",
        "host": "localhost",
        "password_pbkdf2_default_rounds": 1000,
        **limits,
    }
    for key, value in values.items():
        text, found = re.subn(rf"(?m)^#?{key} = .*$", f"{key} = {value}", text, count=1)
        assert found, key
    text = re.sub(r"(?m)^debug = $", f"debug = {home / 'mail.txt'}", text)
    config.write_text(text)
    subprocess.run([*admin, "initialise", PASSWORD], check=True, capture_output=True)


@attrs.frozen
class RedmineServer:
    """A Redmine with a project, a workflow and users.

    Attributes:
        origin: Its address.
        keys: The API keys of ``agent``, who may change issues; ``silent``, who may change them and not comment;
            ``viewer``, who may only look; ``admin``.
        project: The number of the project; ``hidden`` is one that nobody but the administrator sees.
        hidden: As above.
        tracker: The number of the kind of the issues.
    """

    origin: str
    keys: dict
    project: int
    hidden: int
    tracker: int

    def ask(self, method, path, body=None):
        """Send a request as the administrator."""
        return ask(method, f"{self.origin}/{path}", {"X-Redmine-API-Key": self.keys["admin"]}, body)

    def issue(self, project=None):
        """Return the number of a new issue."""
        fields = {"project_id": project or self.project, "tracker_id": self.tracker, "subject": "It leaks"}
        return str(self.ask("POST", "issues.json", {"issue": fields})["issue"]["id"])

    def texts(self, issue):
        """Return the comments of an issue, without what is hidden in them."""
        found = self.ask("GET", f"issues/{issue}.json?include=journals")["issue"]["journals"]
        return [journal["notes"].partition("\n")[0].strip() for journal in found if journal["notes"]]


REDMINE = Path("/usr/share/redmine")
DATABASE = Path("/var/lib/dbconfig-common/sqlite3/redmine/instances/default/redmine_default")


@contextmanager
def redmine():
    """Run Redmine, as Debian packages it, on a copy of its database."""
    if not (REDMINE / "config.ru").is_file() or not os.access(DATABASE, os.R_OK):
        give_up("Redmine with SQLite is not installed, or may not be read: redmine, redmine-sqlite, puma of Debian")
    puma, bundle = need_command("puma"), need_command("bundle")
    port = free_port()
    origin = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryDirectory(prefix="redmine-", dir=MEMORY if MEMORY.is_dir() else None) as name:
        folder = Path(name)
        shutil.copy(DATABASE, folder / "redmine.db")
        environment = {
            **os.environ,
            "RAILS_ENV": "production",
            "X_DEBIAN_SITEID": "default",
            "DATABASE_URL": f"sqlite3:{folder / 'redmine.db'}?timeout=5000",
        }
        options = {"cwd": REDMINE, "env": environment}
        seed = [bundle, "exec", "rails", "runner", str(HERE / "redmine_seed.rb")]
        made = subprocess.run(seed, **options, capture_output=True, text=True, check=False)
        assert made.returncode == 0, made.stderr[:2000]
        facts = json.loads(made.stdout.strip().splitlines()[-1])
        command = [puma, "-e", "production", "-b", f"tcp://127.0.0.1:{port}", "-t", "1:4", "config.ru"]
        with running(command, lambda: answers(origin), folder / "server.log", **options):
            yield RedmineServer(origin, **facts)


def drop_other_loops(config, items, folder):
    """Run the tests of a folder on asyncio and trio as they are: another loop changes nothing of what is answered."""
    others = {"asyncio-debug", "uvloop"}
    dropped = [
        item
        for item in items
        if item.path.is_relative_to(folder)
        and hasattr(item, "callspec")
        and item.callspec.params.get("anyio_backend") in others
    ]
    config.hook.pytest_deselected(items=dropped)
    items[:] = [item for item in items if item not in dropped]
