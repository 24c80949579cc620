"""Adapters that execute attempts: one module per kind of target, behind `ports.target`."""
