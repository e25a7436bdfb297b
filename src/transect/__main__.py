"""``python -m transect`` is the command `transect`.

Python puts the working directory first in `sys.path`, where a recording may have a file `numpy.py`. From here
on nothing is imported from there. What Python itself imports before, and a file `transect.py`, are only kept
out by ``python -P -m transect``, and by the command `transect`.
"""

import sys

if __name__ == "__main__":
    if not sys.flags.safe_path:
        del sys.path[0]
    from transect.cli import main

    main()
