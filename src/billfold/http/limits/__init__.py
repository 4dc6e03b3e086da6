"""Rate limits and idempotency."""
