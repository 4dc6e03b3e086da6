"""What texts may look like."""

NOT_BLANK = r"\S"
"""The pattern of a text that says something."""
