"""Servers that hand a catalog's tools to others, one module a protocol."""
