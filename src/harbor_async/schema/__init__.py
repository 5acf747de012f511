"""From Python types to JSON Schema, strict decoders and encoders."""

from ._derive import derive_schema
from ._name import Name
from ._registry import register_type

__all__ = ["Name", "derive_schema", "register_type"]
