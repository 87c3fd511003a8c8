"""The modeling core: atoms, models, problems, certificates."""
