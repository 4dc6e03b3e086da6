"""Protocols and frozen types for what is really outside the house: banks, markets, and so on."""
