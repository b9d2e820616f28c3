"""Showing a secret once."""

from __future__ import annotations

import sys

from libs.cli.output import console, print_json
from libs.cli.standard_output import discard_output
from libs.client.credentials import Credentials, file_with, save
from libs.client.errors import OperatorError, UnknownOutcome
from libs.contracts.operating.keys import KeySecret
from libs.contracts.operating.operators import CreatedOperator, OperatorKeySecret


def show_once(
    made: KeySecret | CreatedOperator | OperatorKeySecret, save_as: str | None, *, json: bool
) -> None:
    """Save the key of what was made if wanted, and show it, whichever of the two fails: this is the only copy.

    Raises:
        UnknownOutcome: the secret is neither shown nor saved; or it is shown, and was to be saved and is not.
    """
    not_saved = _not_saved(made, save_as) if save_as else None
    try:
        _show(made, json=json)
        if (file := file_with(made.subscription_key)) is not None:
            print(
                f"bankside: {file} has this key with the secret before: write the new one there.",
                file=sys.stderr,
            )
    except (
        OSError,
        SystemExit,
    ) as error:  # rich ends the process when the reader of a pipe is gone
        if save_as and not_saved is None:
            raise
        discard_output()
        raise UnknownOutcome(
            f"The secret of {made.subscription_key} could not be shown, and is lost. Revoke the key if it is new; if it"
            " was rotated, give programs another key, since rotating it again ends the secret that they sign with."
        ) from error
    if not_saved is not None:
        raise UnknownOutcome(
            f"The secret of {made.subscription_key} is shown above and saved nowhere: keep it. {not_saved}"
        )
    if save_as and not json:
        console().print(f"Saved for --key {save_as}.")


def _not_saved(
    made: KeySecret | CreatedOperator | OperatorKeySecret, save_as: str
) -> OperatorError | None:
    """Save the key under this name; why it could not be."""
    try:
        save(save_as, Credentials(made.subscription_key, made.secret))
    except OperatorError as error:
        return error
    return None


def _show(made: KeySecret | CreatedOperator | OperatorKeySecret, *, json: bool) -> None:
    """To its end: standard output has it."""
    document = made.model_dump()
    if json:
        print_json(document)
    else:
        for name, value in document.items():
            if value is not None:
                console().print(f"{name:17} {value}")
        console().print("The secret is not shown again.")
    sys.stdout.flush()
