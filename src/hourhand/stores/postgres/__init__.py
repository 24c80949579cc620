"""The store on PostgreSQL, for clusters."""
