"""What a call costs, as ratios against the same work written by hand.

``python -m bench`` measures everything and prints a table; ``python -m bench.smoke`` is the short form for CI.
"""
