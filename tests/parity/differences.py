"""The differences on purpose that the recorded cases meet, by their numbers, in one line each.

1 to 33 are the project's own list; those from 34 on were found when the cases were run against the library.
"""

DIFFERENCES = {
    5: "the whole call has a deadline; a wait that does not fit is not begun",
    6: "a bad output is its own error, not 'invalid arguments'",
    7: "a value that comes after the timeout does not count",
    8: "keys match exactly; unknown and duplicate keys are refused at any depth",
    12: "listed tools are frozen values",
    13: "an empty name or a missing function is an invalid tool, not a duplicate",
    14: "examples are decoded, so that types and required keys count",
    15: "recursion, embedding and nullable types work",
    22: "lone surrogates and broken UTF-8 are refused",
    23: "the arguments are always checked",
    24: "integral floats are ints, and ints have any size",
    25: "empty text and null mean no arguments",
    26: "required in the order of declaration, shared types in $defs, cycles and depth allowed",
    28: "the caller's cancellation leaves as a cancellation",
    33: "words outside an enum are refused; replacing an unknown name is 'not found'",
    34: "there is no error that is none: what raises nothing succeeds, and is not classed",
    35: "a check that breaks is a bad argument or a bad output, not a crash",
    36: "a catalog can always be searched; its index is built at the first search",
    37: "a default that JSON can say stands in the schema",
    38: "a named type is what it names",
    39: "a type with a JSON form of its own has the schema of that form",
    40: "a field may have any name on the wire",
    41: "two fields with one name on the wire are refused",
    42: "what was sent is kept, though it be empty or null",
    43: "maps keep the order in which they were sent",
    44: "times have microseconds",
    45: "a type without a JSON form is refused at the root, too",
    46: "schema and decoder never contradict each other",
    47: "arguments are always an object, so that a tool that takes something else is refused",
    48: "map keys of which nothing is said are text",
}
