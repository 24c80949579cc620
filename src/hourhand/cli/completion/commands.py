"""`completion`: prints the scripts of shells, and answers what they ask."""

import re
from typing import Annotated

import typer

from hourhand.cli.completion.scripts import FILES, SCRIPTS
from hourhand.cli.options import Call, command
from hourhand.cli.text import clean, shortened

_HELP_WIDTH = 80
_SPECIAL = re.compile(r"[^A-Za-z0-9_./:@%+=,\-]")  # what bash would not take for a letter of a word


def register(app: typer.Typer) -> None:
    """Add the commands."""
    command(app, "bash")(bash)
    command(app, "zsh")(zsh)
    command(app, "fish")(fish)
    app.command("answer", hidden=True)(answer)


def bash(call: Call) -> None:
    """Print the script for bash; load it with: eval "$(hourhand completion bash)"."""
    call.out.text(SCRIPTS["bash"])


def zsh(call: Call) -> None:
    """Print the script for zsh; load it after compinit with: eval "$(hourhand completion zsh)"."""
    call.out.text(SCRIPTS["zsh"])


def fish(call: Call) -> None:
    """Print the script for fish; load it with: hourhand completion fish | source."""
    call.out.text(SCRIPTS["fish"])


def answer(
    context: typer.Context,
    words: Annotated[
        list[str] | None, typer.Argument(help="The words so far, the last one as it is.")
    ] = None,
    line: Annotated[str | None, typer.Option(help="Or the line so far.")] = None,
    breaks: Annotated[str, typer.Option(help="Where the shell breaks words.")] = "",
) -> None:
    """Say what a line may go on with: each on a line of its own, after a tab what it means."""
    from hourhand.cli.completion.lines import FILE, place_of, words_of
    from hourhand.cli.completion.lookups import looked_up

    quoted = False
    if line is not None:
        words, quoted = words_of(line)
    place = place_of(context.find_root().command, words or [""])
    if place.kind == FILE:
        typer.echo(FILES)
        return
    if place.kind is not None:
        place.found = looked_up(place)
    whole = place.before + place.word
    cut = (
        0
        if quoted
        else max((whole.rfind(letter) + 1 for letter in breaks if not letter.isspace()), default=0)
    )
    for text, help in place.answers():
        if clean(text) == text:  # what a terminal would act on is not offered
            shown = _escaped(text[cut:]) if line is not None and not quoted else text
            typer.echo(f"{shown}\t{shortened(clean(help), _HELP_WIDTH)}" if help else shown)


def _escaped(text: str) -> str:
    """For bash, which puts it into the line as it is."""
    return _SPECIAL.sub(lambda found: f"\\{found[0]}", text)
