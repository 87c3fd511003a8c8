"""How augmented Lagrangian Newton methods begin: the first penalty parameters, and alternating steps."""
