"""Wire decisions, pure: cut-offs, sending, returns, status changes, message contents."""
