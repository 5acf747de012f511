"""A catalog in the dialects of model providers and protocols, one module each.

Plain dicts go out; plain dicts or objects of a provider's SDK come in. No module imports such an SDK.

::

    from harbor_async.export import anthropic, gemini, mcp, openai

Each has ``tools(catalog)``, ``calls(message)`` and ``answers(results)``; ``schema(schema)``, which says one schema in
its dialect and lists what was lost; and ``to_wire(name)`` with ``from_wire(name)``.
"""

from ..errors import ExportError, Refusal
from ._dialect import Exported, Loss

__all__ = ["ExportError", "Exported", "Loss", "Refusal"]
