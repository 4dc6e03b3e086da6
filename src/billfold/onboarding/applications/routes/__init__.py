"""The operations on applications of both APIs."""
