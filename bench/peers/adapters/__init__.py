"""One module a peer, with ``make(function)``: registers a function and returns what answers a JSON text with one."""
