"""`bankside completion`: the script by which a shell completes commands and options."""

from __future__ import annotations

from typing import Literal

from libs.cli.cli import make_app


def completion(shell: Literal["bash", "zsh", "fish"], /) -> int:
    """Print the script by which a shell completes what is typed. Nothing is installed.

    Such as `bankside completion bash > ~/.local/share/bash-completion/completions/bankside`.

    Args:
        shell: bash, zsh or fish.
    """
    print(make_app([]).generate_completion(shell=shell))
    return 0
