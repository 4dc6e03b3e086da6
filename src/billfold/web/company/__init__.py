"""The pages of a company's team."""
