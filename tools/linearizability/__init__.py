"""Jepsen's way with the real processes: a history of concurrent clients under kills, checked for linearizability."""
