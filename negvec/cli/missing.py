"""What a command says whose packages are not installed."""

from __future__ import annotations

import click


def missing(what: str, error: ImportError) -> click.UsageError:
    """The error of a command that can't do without the extra `relay`: what needs it, and how it comes."""
    return click.UsageError(
        f"{what} needs packages that are not here ({error.name}): pip install 'negvec[relay]' (in a clone: '.[relay]')"
    )
