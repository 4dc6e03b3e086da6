"""Pages of a team: members, invitations, service users, OAuth clients, agreements."""
