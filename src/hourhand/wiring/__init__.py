"""The one place that knows concrete classes: builds processes from settings and runs them."""

from hourhand.wiring.up import run_up

__all__ = ["run_up"]
