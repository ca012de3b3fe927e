"""The options --since and --until, which several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


def window_options(command: Command) -> Command:
    """Add --since and --until: a window of created_at, as in a filter of NIP-01."""
    for name, bound in (("until", "at or before"), ("since", "at or after")):
        text = f"Only items whose created_at is {bound} this."
        command = click.option(f"--{name}", type=click.IntRange(0, 2**64 - 2), metavar="TIMESTAMP", help=text)(command)
    return command
