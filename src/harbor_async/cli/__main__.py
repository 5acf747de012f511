"""``python -m harbor_async.cli`` is ``harbor-async``."""

import sys

from . import main

sys.exit(main())
