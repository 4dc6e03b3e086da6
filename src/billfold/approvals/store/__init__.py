"""Queries of transfer requests, authorization requests, approval rules and reviews."""
