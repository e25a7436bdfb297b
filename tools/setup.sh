#!/bin/sh
# Make .venv and install transect into it, editable: tools/setup.sh [EXTRAS], e.g. tools/setup.sh geo,cdff,test
# Every package gets the version in constraints.txt.
# Needs python3 (>= 3.11) with pip. Uses uv because it is about five times faster, plain pip where uv fails.
set -eu
cd "$(dirname "$0")/.."

extras=${1:-}
python=${PYTHON:-python3}
venv_python=.venv/bin/python
requirement=".${extras:+[$extras]}"

if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    echo "transect needs Python 3.11 or newer; $python is $("$python" --version 2>&1)." >&2
    echo "Name another one: make PYTHON=python3.12 ..." >&2
    exit 1
fi
if ! "$venv_python" -c '' 2>/dev/null; then
    "$python" -m venv --clear .venv
elif ! "$venv_python" -m pip --version >/dev/null 2>&1; then
    "$venv_python" -m ensurepip
fi

if [ -t 2 ]; then quiet=; else quiet=--quiet; fi

# The value of one pip setting, by pip's own precedence; several values are separated by blanks.
pip_settings=$("$venv_python" -m pip config list)
pip_setting() {
    for section in :env: install global; do
        value=$(printf '%s\n' "$pip_settings" | sed -n "s/^$section\.$1='\(.*\)'\$/\1/p" | sed 's/\\n/ /g')
        if [ -n "$value" ]; then
            printf '%s\n' "$value"
            return
        fi
    done
}

# uv does not read pip's configuration: pass on where packages come from. Its own settings, if any, win.
uv_install() {
    set -- $quiet --python "$venv_python"
    if [ -z "${UV_DEFAULT_INDEX:-}${UV_INDEX_URL:-}" ]; then
        for url in $(pip_setting index-url); do set -- "$@" --default-index "$url"; done
        for url in $(pip_setting extra-index-url); do set -- "$@" --index "$url"; done
        for place in $(pip_setting find-links); do set -- "$@" --find-links "$place"; done
        for host in $(pip_setting trusted-host); do set -- "$@" --allow-insecure-host "$host"; done
        # Like pip: the best version over all indexes, not whatever the first index that knows the name has.
        set -- "$@" --index-strategy unsafe-best-match
    fi
    certificate=$(pip_setting cert)
    if [ -n "$certificate" ]; then export SSL_CERT_FILE="$certificate"; fi
    "$venv_python" -m uv pip install "$@" --constraints constraints.txt --editable "$requirement"
}

echo "Installing $requirement into .venv (the first time: about 350 MB to download)" >&2
if ! { "$venv_python" -m pip install $quiet --disable-pip-version-check uv && uv_install; }; then
    echo "uv could not install it, trying plain pip" >&2
    "$venv_python" -m pip install $quiet --disable-pip-version-check --constraint constraints.txt --editable "$requirement"
fi

# The tests start hundreds of processes: compile once, not in each where Python may not write byte code. What does
# not compile in other packages (templates, tests of errors) is theirs.
if [ -n "$extras" ]; then
    "$venv_python" -m compileall -q -j 2 .venv/lib src/transect >/dev/null 2>&1 || true
fi
