"""Pages of signing in and of one's own account: password, passkeys, authenticator app, consents."""
