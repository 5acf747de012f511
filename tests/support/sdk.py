"""The providers' SDKs, which are installed by ``nox -s sdks`` only."""

import importlib
import os

import pytest


def need(name):
    """Import a module of an SDK. Without it skip, or fail where SDKs are what is tested: ``HARBOR_SDKS`` is set."""
    try:
        return importlib.import_module(name)
    except ImportError as exc:
        if "HARBOR_SDKS" in os.environ:
            raise
        pytest.skip(f"no {name} ({exc}); nox -s sdks has it", allow_module_level=True)
