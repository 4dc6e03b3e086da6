"""News for people outside: letters that wait to be sent."""
