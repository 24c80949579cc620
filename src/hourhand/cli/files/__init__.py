"""Jobs in files: reading them, the difference to what is there, applying, exporting, and crontabs."""
