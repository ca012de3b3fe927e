"""The option --filter, which several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


def filter_option(what: str) -> Callable[[Command], Command]:
    """Add --filter, a filter of NIP-01, which the command gets as the dict `asked`; its help begins with `what`."""
    text = f"{what}, as in a REQ; everything by default."
    return click.option("--filter", "asked", metavar="JSON", default="{}", callback=_parsed, help=text)


def _parsed(ctx: click.Context, param: click.Parameter, value: str) -> dict[str, Any]:
    import orjson

    try:
        asked = orjson.loads(value)
    except orjson.JSONDecodeError as error:
        raise click.BadParameter(f"it is no JSON: {error}") from None
    if not isinstance(asked, dict):
        raise click.BadParameter("it is no JSON object, such as '{\"kinds\":[1]}'")
    return asked
