"""Customers as they are listed and shown.

Owns the reads of customers and the merging of their profile. Never writes one: the engine does.
"""

from billfold.domain.customers.reads import list_customers
from billfold.domain.customers.rules import merged_profile

__all__ = ["list_customers", "merged_profile"]
