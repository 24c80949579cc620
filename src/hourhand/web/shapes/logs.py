"""What runs said, in answers."""

from typing import Literal

from hourhand.web.shapes.parts import A_TIME, Shape, always


class LogChunkAnswer(Shape):
    """A piece of what an attempt said."""

    attempt: int = always("Which attempt said it.", 1)
    seq: int = always("Its place within the attempt, from 1.", 1)
    at: str = always("When the worker read it.", A_TIME)
    stream: Literal["output", "log", "system"] = always(
        "A command's stdout and stderr, a function's log, or a note of hourhand's own.", "output"
    )
    text: str = always("Text as it came, control characters included; not always whole lines.", "done\n")


class LogAnswer(Shape):
    """What the attempts of a run said, in order."""

    data: list[LogChunkAnswer] = always("The pieces.", [])
    next_after: str = always("Where to go on: give it as `after`.", "1-7")
    done: bool = always("Whether that was all, and no more can come.", True)
