"""Adapters of the port of identity: who a JWT is about, by secrets and by published keys."""
