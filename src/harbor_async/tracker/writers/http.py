"""For writers over HTTP: requests and answers as values, the transport between them, and a token that hides itself.

``HTTPTransport`` needs the extra ``http``; the rest needs nothing, so that another client can be brought.
"""

from ._http import HTTPTransport, Request, Response, Secret, Transport

__all__ = ["HTTPTransport", "Request", "Response", "Secret", "Transport"]
