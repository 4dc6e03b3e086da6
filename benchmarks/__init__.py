"""Measures how fast the bank is on this machine, each figure next to a baseline of the same run.

Owns the workloads, the throwaway database they run on and the report. Never touches the state
of a bank, and no other part of Billfold imports it but the command line.
"""
