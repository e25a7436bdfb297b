"""One world a file; `day(options)` makes a day in it."""
