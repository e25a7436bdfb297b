"""Maps brought together: where one height map lies in another."""
