"""pygal, without what it does to every other import."""

import sys

from pygal import XY  # type: ignore[import-untyped]  # it has no types
from pygal.style import Style  # type: ignore[import-untyped]  # as above

# It leaves a finder of modules, of which Python before 3.12 warns at each import that fails: an error in a host that
# makes warnings errors. It finds maps, which are not used here.
sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__module__ != "pygal"]

__all__ = ["XY", "Style"]
