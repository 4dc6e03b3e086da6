"""How amounts came about, down to their rows."""
