"""Pages about OAuth clients: consent, registration, keys."""
