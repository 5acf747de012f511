"""A catalog within agent frameworks, and their tools within a catalog; one module and one extra a framework.

Whatever a framework's model calls goes through ``Runtime.invoke``: limits, policies, scopes and approval hold there as
everywhere, and each call has its one answer, under the framework's own id of it.
"""
