"""The REST edge: documents, routes, problems and guards. Services decide; here are only spellings and HTTP."""
