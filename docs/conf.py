"""How Sphinx builds these pages."""

import importlib.metadata

project = "harbor_async"
author = "The harbor_async authors"
project_copyright = "The harbor_async authors"
release = importlib.metadata.version("harbor-async")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build", "examples"]
html_theme = "furo"
html_title = "harbor_async"

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
python_maximum_signature_line_length = 100
python_use_unqualified_type_names = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True

nitpicky = True
nitpick_ignore_regex = [
    (r"py:.*", r"(?!harbor_async\b).*"),  # no network in the build, so no inventories of other projects
    (r"py:.*", r"harbor_async\..*\.[A-Z][a-z]?"),  # type variables
    (r"py:.*", r"harbor_async\..*\.(FunctionSchema|Link|Stream|ToolDecorator|ToolOptions|Wait)"),  # told where used
]
