"""Days in a second: the real services on a store in memory and a clock that jumps, for `simulate` and for tests."""
