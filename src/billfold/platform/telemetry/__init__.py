"""Metrics and traces of a process. Neither is loaded before it is switched on."""
