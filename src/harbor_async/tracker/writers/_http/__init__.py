"""What the writers over HTTP share: requests and answers as values, what an answer means, a transport, marks."""

from ._answer import RULES, Rule, by_status, refusal, texts, wait_of
from ._mark import check_url, hide, link_text, links_in, mark
from ._request import Request, Response, Transport, check_base
from ._secret import Secret
from ._state import find_state, no_state, unmoved
from ._tracker import Classify, HTTPTracker
from ._transport import HTTPTransport

__all__ = [
    "RULES",
    "Classify",
    "HTTPTracker",
    "HTTPTransport",
    "Request",
    "Response",
    "Rule",
    "Secret",
    "Transport",
    "by_status",
    "check_base",
    "check_url",
    "find_state",
    "hide",
    "link_text",
    "links_in",
    "mark",
    "no_state",
    "refusal",
    "texts",
    "unmoved",
    "wait_of",
]
