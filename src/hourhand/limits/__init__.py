"""Adapters of the port of limits."""
