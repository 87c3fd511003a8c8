"""First-order methods for almost any problem: proximal gradient steps (FISTA) and splitting (ADMM)."""
