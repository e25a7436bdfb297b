"""What people look at: `report/` is one page about recordings and runs, `viewer/` one that scrubs them."""
