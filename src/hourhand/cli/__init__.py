"""The command line: one module per noun. Data goes to stdout, everything else to stderr.

Server commands speak through `hourhand.client`; `next`, `cron check` and `check` need no server. What `up`
starts is handed in from above, so that nothing here knows a concrete class.
"""
