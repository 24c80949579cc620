"""`dag`: graphs of jobs drawn in the terminal, and checked in files."""
