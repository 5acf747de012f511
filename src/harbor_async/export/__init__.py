"""A catalog in the dialects of model providers and protocols, one module each.

Plain dicts go out; plain dicts or objects of a provider's SDK come in. No module imports such an SDK.

::

    from harbor_async.export import anthropic, gemini, mcp, openai

Each of them has ``tools(catalog)``, ``calls(message)`` and ``answers(results)``, and for single names ``to_wire(name)``
and ``from_wire(name)``. Those of model providers have ``schema(schema)``, too, which lists what was lost.

``repair`` unwraps arguments that a model has sent as text of JSON; a ``Runtime`` is given it.
"""

from ..errors import ExportError, Refusal
from ._dialect import Exported, Loss
from ._repair import repair

__all__ = ["ExportError", "Exported", "Loss", "Refusal", "repair"]
