"""Showing a secret once."""

from __future__ import annotations

import sys

from libs.cli.output import console, print_json
from libs.client.credentials import Credentials, file_with, save
from libs.contracts.operating.keys import KeySecret
from libs.contracts.operating.operators import CreatedOperator, OperatorKeySecret


def show_once(
    made: KeySecret | CreatedOperator | OperatorKeySecret, save_as: str | None, *, json: bool
) -> None:
    """Show what was made and save its key if wanted, whichever of the two fails: this is the only copy."""
    try:
        document = made.model_dump()
        if json:
            print_json(document)
        else:
            for name, value in document.items():
                if value is not None:
                    console().print(f"{name:17} {value}")
            console().print("The secret is not shown again.")
        if (file := file_with(made.subscription_key)) is not None:
            print(
                f"bankside: {file} has this key with the secret before: write the new one there.",
                file=sys.stderr,
            )
    finally:
        if save_as:
            save(save_as, Credentials(made.subscription_key, made.secret))
            if not json:
                console().print(f"Saved for --key {save_as}.")
