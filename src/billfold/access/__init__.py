"""Access: partners, users, teams, OAuth 2.0, and the pages on which users sign in."""
