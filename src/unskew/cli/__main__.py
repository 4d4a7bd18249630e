"""``python -m unskew.cli``."""

from unskew.cli import main

if __name__ == "__main__":
    main()
