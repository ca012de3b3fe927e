"""The command line: a module a command, imported when it runs, so that `negvec --help` answers at once."""

from __future__ import annotations

import difflib
import importlib
import logging
import sys
import traceback

import click

import negvec

TROUBLE = 2  # exit status, as diff has it: 0 the same, 1 different, 2 trouble

COMMANDS = {
    "reconcile": "Find what two files lack of each other.",
    "fingerprint": "Print the count and fingerprint of a set: are we in sync?",
    "index": "Sort and sum a file once, so that it opens at once.",
    "verify": "Check that such a file is sound.",
    "sync": "Bring a store of events and a relay to the same set (NIP-77).",
    "relay": "Run a Nostr relay that reconciles (NIP-77).",
    "import": "Bring events from a file into a store of events.",
    "export": "Write the events of a store to a file.",
    "inspect": "Show what a message says, range by range.",
    "profile": "Show where the time of a reconciliation goes.",
    "warmup": "Compile ahead what the first use would compile.",
}


_NAMES = {"import": "import_events", "export": "export_events"}  # since import is Python's word
_NO_ARGUMENTS = getattr(click.exceptions, "NoArgsIsHelpError", ())  # click 8.1 shows the help by itself


class _LazyGroup(click.Group):
    """Commands of the same name in modules of the same name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        name = _NAMES.get(cmd_name, cmd_name)
        command: click.Command = getattr(importlib.import_module(f"negvec.cli.{name}"), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, but that a name mistyped is told what may be meant."""
        near = difflib.get_close_matches(args[0], COMMANDS, n=1)
        if args[0] not in COMMANDS and near:
            ctx.fail(f"No such command {args[0]!r}. (Did you mean {near[0]!r}?)")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.command(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(negvec.__version__, prog_name="negvec")
@click.option("-v", "--verbose", count=True, help="Log to standard error what is done (-vv: in detail).")
def cli(verbose: int) -> None:
    """Set reconciliation over Negentropy Protocol V1.

    Two machines hold large sets of records; negvec finds what each lacks while sending little more than the
    difference. Files may be Nostr events as JSON lines (a strfry export), created_at,id as CSV, both also compressed
    with gzip or zstd, .npy or .npz, what `negvec index` writes, or - for standard input.

    \b
    Examples:
      negvec reconcile ours.jsonl theirs.jsonl.gz
      negvec reconcile ours.csv theirs.csv --need missing.txt
      strfry export | negvec fingerprint -
      negvec inspect 6100000200

    Exit status, as diff has it: 0 the same (or done), 1 different, 2 trouble.
    """
    level = {0: logging.WARNING, 1: logging.INFO}.get(verbose, logging.DEBUG)
    logging.basicConfig(level=level, format="negvec: %(message)s", stream=sys.stderr)
    for noisy in ("numba", "asyncio", "filelock", *(["websockets"] if verbose < 2 else [])):
        logging.getLogger(noisy).setLevel(logging.WARNING)


def main() -> None:
    """Run the command line; what goes wrong is told in a line that begins with "negvec: ", with exit status 2."""
    try:
        status = cli.main(standalone_mode=False) or 0
    except SystemExit as stop:
        # Whoever read our output has seen enough: click ends quietly, but with the status that means "different" here.
        status = TROUBLE if stop.code else 0
    except click.exceptions.Exit as stop:
        status = stop.exit_code
    except _NO_ARGUMENTS as error:
        click.echo(error.format_message(), err=True)  # the help
        status = TROUBLE
    except click.ClickException as error:
        if isinstance(error, click.UsageError) and error.ctx is not None:
            click.echo(error.ctx.get_usage(), err=True)
            click.echo(f"'{error.ctx.command_path} --help' says more.", err=True)
        click.echo(f"negvec: {error.format_message()}", err=True)
        status = TROUBLE
    except click.Abort:
        click.echo("negvec: interrupted", err=True)
        status = 130
    except (negvec.ProtocolError, ValueError, TypeError, OSError) as error:
        click.echo(f"negvec: {error}", err=True)
        status = TROUBLE
    except Exception:  # a fault of negvec's own must not look like "different"
        traceback.print_exc()
        status = TROUBLE
    sys.exit(status)
