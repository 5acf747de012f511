"""Making a tracker's file, and opening it."""

import os
import secrets
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Final

from ...._categories import Delivery, ErrorCategory
from ..._writer import TrackerError
from ._failure import explain, is_busy, refuse

_APPLICATION_ID: Final = 0x48425254
"""``HBRT``: tells a tracker's file from any other SQLite file. Source: sqlite.org/pragma.html#pragma_application_id."""
_VERSION: Final = 1
"""Of the schema; kept in ``user_version``."""
_OLDEST_SQLITE: Final = (3, 37, 0)
"""Has STRICT tables. Source: sqlite.org/stricttables.html."""

_SCHEMA: Final = f"""
BEGIN;
PRAGMA application_id = {_APPLICATION_ID};
PRAGMA user_version = {_VERSION};

CREATE TABLE states (
  position INTEGER PRIMARY KEY, -- a new issue is in the first state; a close takes the first closed one it can reach
  name TEXT NOT NULL UNIQUE CHECK (trim(name) <> ''),
  is_closed INTEGER NOT NULL DEFAULT 0 CHECK (is_closed IN (0, 1))
) STRICT;

CREATE TABLE moves (
  source TEXT NOT NULL REFERENCES states (name) ON UPDATE CASCADE ON DELETE CASCADE,
  target TEXT NOT NULL REFERENCES states (name) ON UPDATE CASCADE ON DELETE CASCADE,
  PRIMARY KEY (source, target)
) STRICT, WITHOUT ROWID;

CREATE TABLE issues (
  number INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE CHECK (trim(id) <> ''),
  title TEXT NOT NULL CHECK (trim(title) <> ''),
  state TEXT NOT NULL REFERENCES states (name) ON UPDATE CASCADE
) STRICT;

CREATE TABLE history (
  seq INTEGER PRIMARY KEY,
  issue TEXT NOT NULL REFERENCES issues (id),
  op TEXT NOT NULL, -- add, comment, transition, close, link_pr
  source TEXT, -- the states before and after; both NULL where it stayed
  target TEXT,
  text TEXT NOT NULL DEFAULT '', -- the reason of a close, the URL of a link
  at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
) STRICT;
CREATE INDEX history_issue ON history (issue);

CREATE TABLE comments (
  seq INTEGER PRIMARY KEY REFERENCES history (seq),
  issue TEXT NOT NULL REFERENCES issues (id),
  body TEXT NOT NULL CHECK (trim(body) <> '')
) STRICT;

CREATE TABLE links (
  issue TEXT NOT NULL REFERENCES issues (id),
  url TEXT NOT NULL CHECK (trim(url) <> ''),
  seq INTEGER NOT NULL REFERENCES history (seq),
  PRIMARY KEY (issue, url)
) STRICT, WITHOUT ROWID;

CREATE TABLE writes ( -- what has been done, in one transaction with its effect
  key TEXT PRIMARY KEY,
  fingerprint BLOB NOT NULL,
  seq INTEGER REFERENCES history (seq) -- NULL where nothing was left to do
) STRICT, WITHOUT ROWID;

INSERT INTO states (name, is_closed) VALUES ('open', 0), ('in_progress', 0), ('in_review', 0), ('closed', 1);
INSERT INTO moves (source, target) VALUES
  ('open', 'in_progress'), ('in_progress', 'in_review'), ('in_progress', 'open'), ('in_review', 'in_progress'),
  ('open', 'closed'), ('in_progress', 'closed'), ('in_review', 'closed'), ('closed', 'open');
COMMIT;
"""  # noqa: S608 - the text is ours


def make_file(path: Path) -> None:
    """Make the file of a new tracker, with the default workflow and no issue. It appears whole or not at all.

    Raises:
        TrackerError: There is something of that name already (``conflict``), or it cannot be written.
    """
    _check_library()
    # A log that was left behind would be played into the new file.
    for left in (path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-journal")):
        if os.path.lexists(left):
            msg = f"a new tracker needs a new file, and there is already a {str(left)!r}"
            raise refuse(ErrorCategory.CONFLICT, msg)
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    try:
        connection = _connect(draft, "rwc")
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.executescript(_SCHEMA)
        finally:
            connection.close()
        os.link(draft, path)
    except FileExistsError as exc:
        msg = f"a new tracker needs a new file, and there is already a {str(path)!r}"
        raise refuse(ErrorCategory.CONFLICT, msg) from exc
    except OSError as exc:
        msg = f"cannot make the tracker's file: {exc.strerror}: {str(path)!r}"
        raise TrackerError(msg, category=ErrorCategory.UNSUPPORTED, delivery=Delivery.NOT_SENT) from exc
    except sqlite3.Error as exc:
        raise explain(exc) from exc
    finally:
        with suppress(OSError):
            draft.unlink()


def open_file(path: Path) -> sqlite3.Connection:
    """Open the file of a tracker that was made before. Any thread may use the connection, one at a time.

    Raises:
        TrackerError: There is none (``not_found``), or it is something else.
        sqlite3.OperationalError: Another connection has it locked just now.
    """
    _check_library()
    if not path.is_file():
        if path.exists():
            msg, category = f"no file: {str(path)!r}", ErrorCategory.UNSUPPORTED
        else:
            msg, category = f"there is no tracker {str(path)!r}; make one first", ErrorCategory.NOT_FOUND
        raise TrackerError(msg, category=category, delivery=Delivery.NOT_SENT)
    connection: sqlite3.Connection | None = None
    try:
        connection = _connect(path, "rw")
        connection.execute("PRAGMA synchronous = FULL")  # what was answered is on the disk, not on its way there
        _check_kind(connection, path)
    except (sqlite3.Error, TrackerError) as exc:
        if connection is not None:
            connection.close()
        if isinstance(exc, TrackerError) or is_busy(exc):
            raise
        raise explain(exc) from exc
    return connection


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    # Waiting for a lock inside SQLite could not be canceled, so there is no timeout here.
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    return sqlite3.connect(uri, uri=True, timeout=0.0, isolation_level=None, check_same_thread=False)


def _check_library() -> None:
    if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
        oldest = ".".join(map(str, _OLDEST_SQLITE[:2]))
        msg = f"the tracker needs SQLite {oldest} or newer; this Python has {sqlite3.sqlite_version}"
        raise TrackerError(msg, category=ErrorCategory.UNSUPPORTED, delivery=Delivery.NOT_SENT)


def _check_kind(connection: sqlite3.Connection, path: Path) -> None:
    (kind,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if kind != _APPLICATION_ID:
        msg = f"an SQLite database, but not a tracker's: {str(path)!r}"
    elif version != _VERSION:
        msg = f"the tracker has schema version {version}, and this release knows {_VERSION}: {str(path)!r}"
    else:
        return
    raise TrackerError(msg, category=ErrorCategory.UNSUPPORTED, delivery=Delivery.NOT_SENT)
