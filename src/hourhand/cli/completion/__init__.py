"""Completion in shells: the scripts that they load, what a line may go on with, and names that the server knows."""
