"""Shapes that several parts share: amounts, pages of lists, texts."""
