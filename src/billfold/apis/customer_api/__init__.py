"""The Customer API: a company's own systems work with its Pockets over OAuth 2.0."""
