"""Where a visitor begins."""
