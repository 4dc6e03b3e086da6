"""What every HTTP door shares: errors, headers, authentication and rendering."""
