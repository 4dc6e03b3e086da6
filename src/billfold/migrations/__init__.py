"""Numbered SQL files, each with its reverse, and the runner that applies them."""
