"""What all HTTP APIs share: errors, headers, authentication and rendering."""
