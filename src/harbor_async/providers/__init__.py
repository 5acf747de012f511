"""Tools that live elsewhere, as descriptors in a catalog."""
