"""The management port of `serve` and `worker`: whether they live and are ready, and what Prometheus reads.

It reads the bank through a connection that cannot write, and is never on a public port.
"""
