"""Numbered SQL files, each with its way back, and the runner that applies them."""
