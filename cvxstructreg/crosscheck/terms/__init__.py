"""Random terms of a recipe: losses, penalties, and penalties with further structure."""
