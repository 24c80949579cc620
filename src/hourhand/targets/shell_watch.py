"""A tiny program: ends the commands of a worker that was killed, since nobody else would.

It reads `+123` and `-123`, process groups that begin and end, one a line, from a pipe whose other end is the
worker's. When the worker is gone, however that came, the pipe closes, and what is left is killed. Run as a file, by
itself, so it imports nothing of ours.
"""

import contextlib
import os
import signal
import sys


def main() -> None:
    """Until the pipe closes."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # it ends with its worker, not before
    groups = set()
    for line in sys.stdin:
        group = int(line[1:])
        if line[0] == "+":
            groups.add(group)
        else:
            groups.discard(group)
    for group in groups:
        with contextlib.suppress(OSError):
            os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    main()
