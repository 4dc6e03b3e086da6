"""The pages of a partner's own team."""
