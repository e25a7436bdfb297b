"""``python -m transect`` is the command `transect`."""

from transect.cli import main

if __name__ == "__main__":
    main()
