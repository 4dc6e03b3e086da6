"""Pages about a team: members, invitations, service users."""
