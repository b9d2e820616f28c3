"""`python -m libs.client …`: the `bankside` command."""

from libs.client.cli import main

if __name__ == "__main__":
    main()
