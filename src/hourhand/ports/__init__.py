"""What the services ask of the outside world, each with its written contract."""
