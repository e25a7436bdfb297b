"""Labels: objects in files (`objects`), further areas (`areas`), and complete labels (`products`)."""
