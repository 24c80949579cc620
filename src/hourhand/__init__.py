"""Hourhand, a distributed job scheduler. This file owns the version; everything else is one level down."""

__version__ = "0.1.0.dev0"
