"""Dual control: one person requests, others decide.

Owns transfer requests, approval rules, authorization requests (sensitive changes that need a second
person) and every review of them. Never moves money: commands of the engine carry out what was
approved, under the request's id.
"""
