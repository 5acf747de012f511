r"""Regular expressions that Python and ECMA-262 read the same way.

A schema's ``pattern`` is an ECMA expression (JSON Schema 2020-12 §6.4); the decoder runs Python's ``re``. Where the two
agree the text passes as it is; where they differ in a known way (``$``, ``\d``, ``\w``, ``\s``, ``.``) the decoder's
copy is rewritten to mean what ECMA means; everything else is refused.
"""

import re
from typing import Final

_ANCHOR: Final = r"\Z"
_SPACE: Final = (
    r"\t\n\x0b\x0c\r \xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    r"\u2028\u2029\u202f\u205f\u3000\ufeff"
)
_ESCAPES: Final = {"d": "0-9", "w": "A-Za-z0-9_", "s": _SPACE}
_SAME_ESCAPES: Final = frozenset("tnrfvbB^$\\.*+?()[]{}|/-")
_GROUPS: Final = ("(?:", "(?=", "(?!", "(?<=", "(?<!")
_QUANTIFIER: Final = re.compile(r"\{[0-9]+(?:,[0-9]*)?\}|[*+?]")
_HEX: Final = re.compile(r"x[0-9a-fA-F]{2}|u(?!d[89a-f])[0-9a-fA-F]{4}", re.IGNORECASE)
_PUNCTUATION: Final = frozenset("!\"#%&',:;<=>@_`~ ")


class PatternError(ValueError):
    """A pattern is no expression, or Python and ECMA read it differently."""


def to_python(pattern: str) -> str:
    r"""Return the Python expression that means what ``pattern`` means in ECMA-262.

    Raises:
        PatternError: The two would differ, or it is no regular expression at all.
    """
    out: list[str] = []
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            text, at = _escape(pattern, at + 1, in_class=False)
            out.append(text)
        elif char == "[":
            text, at = _class(pattern, at)
            out.append(text)
        elif char == "(":
            text, at = _group(pattern, at)
            out.append(text)
        elif char in "*+?{":
            text, at = _repeat(pattern, at)
            out.append(text)
        elif char in "]}":
            msg = f"an unescaped {char!r}: escape it"
            raise PatternError(msg)
        else:
            out.append({"$": _ANCHOR, ".": r"[^\n\r\u2028\u2029]"}.get(char, char))
            at += 1
    text = "(?a)" + "".join(out)
    try:
        re.compile(text)
    except re.error as exc:
        msg = f"no regular expression: {exc.msg}"
        raise PatternError(msg) from exc
    return text


def _escape(pattern: str, at: int, *, in_class: bool) -> tuple[str, int]:
    char = pattern[at : at + 1]
    if char in _ESCAPES:
        return (_ESCAPES[char] if in_class else f"[{_ESCAPES[char]}]"), at + 1
    if char.lower() in _ESCAPES and not in_class:
        return f"[^{_ESCAPES[char.lower()]}]", at + 1
    if (match := _HEX.match(pattern, at)) is not None:
        return "\\" + match[0], match.end()
    if char and char in _SAME_ESCAPES and not (in_class and char == "B"):
        return "\\" + char, at + 1
    if char and char in _PUNCTUATION:
        return re.escape(char), at + 1
    msg = f"the escape \\{char}, which Python and ECMA read differently"
    raise PatternError(msg)


def _class(pattern: str, start: int) -> tuple[str, int]:
    at = start + 1
    out = ["["]
    if pattern[at : at + 1] == "^":
        out.append("^")
        at += 1
    if pattern[at : at + 1] == "]":
        msg = "an empty character class"
        raise PatternError(msg)
    while at < len(pattern) and pattern[at] != "]":
        if pattern[at] == "\\":
            text, at = _escape(pattern, at + 1, in_class=True)
        elif pattern[at] == "[" or pattern[at : at + 2] in {"&&", "--", "~~", "||"}:
            msg = f"an unescaped {pattern[at]!r} in a character class: escape it"
            raise PatternError(msg)
        else:
            text, at = pattern[at], at + 1
        out.append(text)
    if at == len(pattern):
        msg = "an unterminated character class"
        raise PatternError(msg)
    return "".join([*out, "]"]), at + 1


def _group(pattern: str, at: int) -> tuple[str, int]:
    if pattern[at : at + 2] != "(?":
        return "(", at + 1
    for opening in sorted(_GROUPS, key=len, reverse=True):
        if pattern.startswith(opening, at):
            return opening, at + len(opening)
    msg = "a group that only one of Python and ECMA knows; use (...), (?:...) or a look-around"
    raise PatternError(msg)


def _repeat(pattern: str, at: int) -> tuple[str, int]:
    match = _QUANTIFIER.match(pattern, at)
    if match is None:
        msg = "an unescaped '{': escape it, or write {n}, {n,} or {n,m}"
        raise PatternError(msg)
    end = match.end()
    lazy = pattern[end : end + 1] == "?"
    end += lazy
    if pattern[end : end + 1] in set("*+?"):
        msg = "a possessive or doubled quantifier"
        raise PatternError(msg)
    return pattern[at:end], end
