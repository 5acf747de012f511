"""The differences on purpose that the recorded cases meet, by their numbers, in one line each.

1 to 33 are the project's own list; those from 34 on were found when the cases were run against the library.
"""

DIFFERENCES = {
    2: "errors are classed by type and attributes, not by words",
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
    27: "negative and unknown values of a policy are refused; harbor() reads them as the seed",
    28: "the caller's cancellation leaves as a cancellation",
    29: "socket timeouts are timeouts",
    31: "no HTML escapes in the output",
    32: "an explicit retry_on is obeyed",
    33: "words outside an enum are refused; replacing an unknown name is 'not found'",
    34: "there is no error that is none: what raises nothing succeeds, and is not classed",
}
