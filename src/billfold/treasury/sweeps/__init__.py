"""Sweeps: what arrives on a bank account becomes cash and bills."""
