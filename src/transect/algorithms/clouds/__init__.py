"""Point clouds: deskewing, voxels, selection."""
