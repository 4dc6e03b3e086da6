"""Users, partners and operators: their authentication and authorization."""
