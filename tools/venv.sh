#!/bin/sh
# Makes the virtual environment named by $1, unless it is there and works, with the best Python found.
# Each candidate is run, not only looked up: a version manager's shim may exist without its Python.
set -eu

venv=$1
usable='import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))'
new_enough='import sys; sys.exit(sys.version_info < (3, 11))'

if "$venv/bin/python" -c "$new_enough" 2>/dev/null && "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    exit 0
fi

for python in ${PYTHON:-python3.13 python3.12 python3.11 python3 python}; do
    if "$python" -c "$usable" >/dev/null 2>&1; then
        echo "making $venv with $("$python" --version)"
        exec "$python" -m venv --clear "$venv"
    fi
    if "$python" -c "$new_enough" >/dev/null 2>&1; then
        without_venv=$python
    fi
done

if [ -n "${without_venv:-}" ]; then
    echo "$without_venv is new enough but cannot make virtual environments: install its venv package" >&2
    echo "(on Debian and Ubuntu: apt install python3-venv), then run make again." >&2
else
    echo "Python 3.11 or newer is needed, and none was found as ${PYTHON:-python3.13, python3.12, python3.11 or python3}." >&2
    echo "Install one, or name it: make PYTHON=/path/to/python3 ..." >&2
fi
exit 1
