"""Pages about one's own account: password, passkeys, authenticator app."""
