"""A tool whose JSON Schemas are not ours: of an MCP server, an OpenAPI document, another framework."""

from collections.abc import Callable, Mapping
from typing import Any, Unpack

from ._declaration import ToolOptions, make_descriptor
from ._descriptor import ToolDescriptor
from .errors import InvalidToolError, SchemaBuildError


def describe_foreign(
    function: Callable[..., Any],
    /,
    *,
    args_schema: Mapping[str, Any],
    out_schema: Mapping[str, Any] | None = None,
    **options: Unpack[ToolOptions],
) -> ToolDescriptor[..., Any]:
    """Make a tool of a function whose JSON Schemas somebody else has written.

    Its arguments are read as strictly as any other tool's, checked against ``args_schema``, and reach the function as
    one dict of JSON values. Its result is checked against ``out_schema`` where the policy checks results. Both schemas
    are compiled once, here. Without ``$schema`` they are of JSON Schema 2020-12; ``format`` informs and is not checked.

    A program calls it with each argument by its name, or all of them as one mapping: ``rt.call(tool, city="Oslo")``;
    these are checked, too, for nothing else knows them.

    Args:
        function: As of ``describe``, with one positional parameter for the dict, and perhaps a ``ToolContext``.
        args_schema: The JSON Schema of the arguments, with ``"type": "object"``.
        out_schema: The JSON Schema of the result; None: any JSON value.
        **options: As of ``describe``.

    Raises:
        SchemaBuildError: A schema is invalid or not that of an object, or refers to another document: none is fetched.
        MissingExtraError: jsonschema-rs is missing.
        RegistrationError: As ``describe``.
    """
    from .schema._foreign import compile_foreign  # noqa: PLC0415 - as in describe
    from .schema._judge import compile_judge  # noqa: PLC0415 - as in describe

    name = options.get("name")
    args, check_args = compile_judge("args_schema", args_schema)
    if args.get("type") != "object":
        msg = 'args_schema: expected the schema of an object, as {"type": "object", "properties": {…}}'
        raise SchemaBuildError(msg)
    out, check_out = (None, None) if out_schema is None else compile_judge("out_schema", out_schema)
    if not callable(function):
        msg = f"a tool is made of a function; got {type(function).__name__}"
        raise InvalidToolError(msg)
    schema = compile_foreign(
        function, name=name, args_schema=args, check_args=check_args, out_schema=out, check_out=check_out
    )
    return make_descriptor(function, schema, options)
