"""A catalog in the dialects of model providers and protocols, one module each.

Plain dicts go out; plain dicts or objects of a provider's SDK come in. No module imports such an SDK.
"""
