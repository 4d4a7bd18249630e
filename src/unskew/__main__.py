"""``python -m unskew``: the command line."""

from unskew.cli import main

if __name__ == "__main__":
    main()
