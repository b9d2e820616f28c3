"""`python -m libs.cli …`: the `bankside` command."""

from libs.cli.cli import main

if __name__ == "__main__":
    main()
