"""The pure core: no I/O, no clock, no randomness, no framework.

Time, randomness and ids come in from outside, so that everything here can be tested by table and replayed.
"""
