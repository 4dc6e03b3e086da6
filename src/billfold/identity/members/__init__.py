"""Members of a customer's team: what they are, and what their roles allow."""
