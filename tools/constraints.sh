#!/bin/sh
# Write constraints.txt: one version of every package that transect, its extras and its tests need, on every Python
# and platform. Run by `make constraints`, to move to new versions; then run the tests.
set -eu
cd "$(dirname "$0")/.."

.venv/bin/python -m uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 \
    --index-strategy unsafe-best-match --no-annotate --no-header --quiet --output-file constraints.txt "$@"
