"""``python -m unskew.cli``."""

from unskew.cli import run

if __name__ == "__main__":
    run()
