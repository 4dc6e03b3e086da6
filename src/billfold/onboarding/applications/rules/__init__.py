"""Rules of applications: fields, requirements and status. Pure."""
