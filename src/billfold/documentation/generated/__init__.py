"""Pages that are made from the code: problems, events, how yield is computed. Each is Markdown, as the others are."""
