"""Jobs of other schedulers: reading what they keep, without running any of it, and writing it as jobs of ours."""
