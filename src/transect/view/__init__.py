"""What people look at: `report/` is one page about recordings and runs."""
