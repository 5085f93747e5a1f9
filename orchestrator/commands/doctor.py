"""`spot doctor`: what may get in a run's way on this machine."""

import click

from orchestrator.commands.shared import console, json_line, overrides_argument, settings_option

STYLES = {"ok": "green", "note": "yellow", "problem": "bold red"}


@click.command()
@click.argument("sweep", required=False)
@overrides_argument
@settings_option
@click.option("--json", "as_json", is_flag=True, help="One JSON line a finding.")
def doctor(sweep: str | None, overrides: tuple[str, ...], settings: tuple[str, ...], as_json: bool) -> int:
    """Look at cores, memory, GPUs, Ray's folder and variables, targets and tasks; exit code 1 when there is a problem.

    With SWEEP also whether workers of the size that it asks for fit this machine.
    """
    from rich.markup import escape
    from rich.table import Table

    from orchestrator.doctor import examine
    from orchestrator.tables import built_in_tables
    from sweeps.load import find_settings, find_sweep, load_sweep

    resources = None
    if sweep:
        files = [find_settings(name) for name in settings]
        resources = load_sweep(find_sweep(sweep), overrides, built_in_tables(), settings=files).resources
    findings = tuple(examine(resources))
    if as_json:
        for finding in findings:
            click.echo(json_line(finding))
    else:
        table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
        for finding in findings:
            style = STYLES[finding.level]
            table.add_row(f"[{style}]{finding.level}[/]", escape(finding.subject), escape(finding.text))
        console().print(table)
    return int(any(finding.level == "problem" for finding in findings))
