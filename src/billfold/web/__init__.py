"""Pages for sign-in, account, team, OAuth clients and consent."""
