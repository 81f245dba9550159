"""`python -m mtbayes` is the command `mtbayes`."""

from mtbayes.cli import run

if __name__ == "__main__":
    run()
