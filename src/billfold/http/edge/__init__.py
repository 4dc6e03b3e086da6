"""The outermost layer: HTTPS only, trace ids, response headers, host names, server start."""
