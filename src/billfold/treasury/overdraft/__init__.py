"""Overdrafts: money that must go back although it is no longer there."""
