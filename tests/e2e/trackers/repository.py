"""Fossil repositories to test with."""

import functools
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from .needs import need_command

MEMORY = Path("/dev/shm")
USER = "agent"


def fossil(*arguments, stdin=None):
    """Run Fossil and return what it wrote."""
    command = [need_command("fossil"), *map(str, arguments)]
    environment = {"PATH": os.environ["PATH"], "HOME": home()}
    return subprocess.run(command, input=stdin, env=environment, capture_output=True, text=True, check=True).stdout


@functools.cache
def folder():
    """Return a folder that lasts as long as the tests; in memory where the system has such a place."""
    kept = tempfile.TemporaryDirectory(prefix="fossil-", dir=MEMORY if MEMORY.is_dir() else None)
    folder.kept = kept
    return Path(kept.name)


def home():
    return str(folder())


@functools.cache
def template():
    """Return a repository with one ticket, and the ticket's id."""
    path = folder() / "template.fossil"
    fossil("new", path, "--admin-user", "admin")
    fossil("user", "new", USER, "an agent", "secret", "--user", "admin", "-R", path)
    said = fossil("ticket", "add", "title", "It leaks", "status", "Open", "--user", "admin", "-R", path)
    return path, said.split()[-1]


def fresh():
    """Return a new copy of the repository, and the ticket's id."""
    path, ticket = template()
    copy = tempfile.NamedTemporaryFile(suffix=".fossil", dir=folder(), delete=False)  # noqa: SIM115 - its name is wanted
    copy.close()
    shutil.copyfile(path, copy.name)
    return copy.name, ticket


def comments(path):
    """Return the comments of all tickets, the oldest first."""
    return ask(path, "icomment", "WHERE icomment IS NOT NULL")


def ask(path, column, where=""):
    """Return a column of what has happened to all tickets, the oldest first."""
    query = (
        f"SELECT json_group_array({column}) FROM (SELECT {column} FROM ticketchng {where} ORDER BY tkt_mtime, rowid);"
    )
    return json.loads(fossil("sql", "--readonly", "-R", path, stdin=f".mode list\n{query}\n"))


def forbid(path):
    """Let a repository be read only, and return the program that then may not write it."""
    Path(path).chmod(0o444)
    if os.geteuid() != 0:
        return "fossil"
    setpriv = need_command("setpriv")  # root may write everything, and has to become somebody else
    folder().chmod(0o755)
    program = folder() / "fossil-as-nobody"
    program.write_text(f'#!/bin/sh\nexec {setpriv} --reuid=65534 --clear-groups fossil "$@"\n')
    program.chmod(0o755)
    return str(program)
