"""The `spot` command. Each command lives in its own file under `commands/` and imports what is heavy only when it runs.

Exit codes: 0 fine; 1 failed cells or an output that differs from draft-free decoding; 2 bad input (one line on stderr);
3 the results are whole but the MLflow mirror is not; 70 a defect of this program (traceback); 130 interrupted.
"""

import os
import sys
from collections.abc import Sequence

import click

from orchestrator.commands.decode import decode
from orchestrator.commands.doctor import doctor
from orchestrator.commands.listing import listing
from orchestrator.commands.measure import measure
from orchestrator.commands.outputs import export, report, sync
from orchestrator.commands.plan import plan
from orchestrator.commands.run import run
from orchestrator.commands.study import study
from orchestrator.commands.train import train
from orchestrator.commands.train_sets import sets

DEFECT, BAD_INPUT, INTERRUPTED = 70, 2, 130


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="spot-sweeps", prog_name="spot")
@click.option("--traceback", is_flag=True, help="Show where in the code a refused input was refused.")
def cli(traceback: bool) -> None:
    """Run sweeps of SPOT and its baselines on block-diffusion language models."""


train.add_command(sets)
for command in (plan, run, report, export, sync, listing, decode, train, study, measure, doctor):
    cli.add_command(command)


def main(argv: Sequence[str] | None = None) -> None:
    """Run a command line and exit with its code; bad input is one line on stderr."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a console that cannot show a character must not end a run
    sys.exit(_run(arguments))


def _run(arguments: list[str]) -> int:
    """The exit code of a command line."""
    try:
        return int(cli.main(arguments, prog_name="spot", standalone_mode=False) or 0)
    except click.exceptions.NoArgsIsHelpError as error:
        print(error.format_message(), file=sys.stderr)
        return BAD_INPUT
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        hint = f" ({context.command_path} --help says more)" if context else ""
        return _refuse(error.format_message() + hint)
    except (click.Abort, KeyboardInterrupt) as error:
        kept = str(error if isinstance(error, KeyboardInterrupt) else error.__cause__ or "")  # click makes an Abort
        print("spot: interrupted" + (f": {kept}" if kept else ""), file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output went away, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (ValueError, OSError) as error:
        if "--traceback" in arguments[:1]:
            raise
        return _refuse(str(error))
    except Exception:
        import traceback

        traceback.print_exc()
        print("spot: this is a defect of spot, not of your input", file=sys.stderr)
        return DEFECT


def _refuse(message: str) -> int:
    """One line on stderr."""
    print(f"spot: {' '.join(message.split())}", file=sys.stderr)
    return BAD_INPUT


if __name__ == "__main__":
    main()
