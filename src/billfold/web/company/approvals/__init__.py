"""Approvals: requests and what they change, decided one by one or together, each confirmed by a factor."""
