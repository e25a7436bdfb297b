"""Labels: what lies in files (`objects`), what is said of it (`areas`), and the whole text (`products`)."""
