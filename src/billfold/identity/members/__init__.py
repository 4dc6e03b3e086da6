"""Members of a customer's team: who they are, and what their roles allow."""
