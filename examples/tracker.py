"""The tools of ``catalog.py`` and ``tracker_write``, which changes issues in a file: ``issues.db``, or ``$TRACKER``.

``harbor-async tracker init issues.db`` makes the file.
"""

import os

from catalog import catalog as shop

import harbor_async as ha
from harbor_async.tracker import tracker_write
from harbor_async.tracker.writers import SQLiteTracker

tracker = SQLiteTracker(os.environ.get("TRACKER", "issues.db"))

catalog = ha.Catalog([*(shop.resolve(tool.name) for tool in shop.list()), tracker_write(tracker)])
