"""Protocols and frozen types for what is really outside the house: banks, markets, card processors."""
