"""What a test of a real tracker needs: missing, it is a skip here and a failure in CI."""

import os
import shutil

import pytest


def give_up(reason):
    """Skip the test; fail it where ``HARBOR_CI`` is set."""
    (pytest.fail if "HARBOR_CI" in os.environ else pytest.skip)(reason)


def need_command(name):
    """Return the path of a command."""
    path = shutil.which(name)
    if path is None:
        give_up(f"the command {name} is not installed")
    return path
