"""The management port of `serve` and `worker`: liveness, readiness, and Prometheus metrics.

It reads the bank through a connection that cannot write, and is never on a public port.
"""
