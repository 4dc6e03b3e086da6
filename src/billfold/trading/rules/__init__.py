"""Decisions of the trading desk: policy, orders, executions, the end of the day."""
