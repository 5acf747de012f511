"""For writers over command lines: commands and exits as values, and what runs them."""

from ._command import Command, CommandTransport, Exit, ProcessTransport

__all__ = ["Command", "CommandTransport", "Exit", "ProcessTransport"]
