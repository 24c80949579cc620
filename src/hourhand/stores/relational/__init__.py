"""What the SQL stores have in common: every operation that is not hot, written once.

An operation is an `async def` of a `Tx`: it runs named statements and decides by `core`. Statements are
each dialect's own, under the same names and with the same columns; engines, the claim, the plan and the
finish are each store's own too. Locks that a dialect needs are in its statements, in the design's order.
"""
