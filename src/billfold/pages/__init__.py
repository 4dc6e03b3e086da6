"""The frame of all pages: one request of a browser, how pages look, the application that serves them.

Owns the session cookie, the protection of forms, the style sheet and the components (`parts.html`). Knows no page:
those of sign-in and teams are in `access/pages`, those of the console in `console`.
"""
