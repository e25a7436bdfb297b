"""What every layer needs and none owns."""
