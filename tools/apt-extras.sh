#!/bin/sh
# Debian packages that some tests want. Only as root with apt-get; elsewhere those tests are skipped and say why.
# A failure here is printed, not fatal.
set -u

packages=${APT_EXTRAS:-}

if [ -z "$packages" ] || [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    exit 0
fi
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086  # a list of names
if ! { apt-get update -qq && apt-get install -y -qq --no-install-recommends $packages; }; then
    echo "apt-extras: could not install $packages; the tests that want them will be skipped" >&2
fi
