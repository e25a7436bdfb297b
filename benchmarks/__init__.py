"""Ours against a peer in one run, printed as a ratio. ``python -m benchmarks`` runs all ``bench_*.py``."""
