"""Billfold: a self-hosted core for bank accounts that live in US Treasury bills."""

__version__ = "0.1.0"
