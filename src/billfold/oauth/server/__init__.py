"""The authorization server: clients get tokens, and users consent."""
