"""Films: a rover over its map, an arm over its deck. Pictures from plain arrays, one for each frame."""
