"""Queries of wires, their messages and cases."""
