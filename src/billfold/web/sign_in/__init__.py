"""Pages for signing in and proving a second factor."""
