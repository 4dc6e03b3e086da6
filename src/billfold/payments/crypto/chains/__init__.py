"""Chains: which there are, their nodes and tokens, and how addresses are derived.

Owns JSON-RPC and what a node answers. Never decides about money.
"""
