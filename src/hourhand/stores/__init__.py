"""Adapters of the store port; chosen by URL in `wiring`, never importing one another."""
