"""Authorizations, holds, clearings, refunds and chargebacks of cards."""
