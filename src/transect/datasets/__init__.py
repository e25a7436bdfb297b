"""One folder for each published data set or mission; each offers what it has by its manifest."""
