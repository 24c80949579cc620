"""The use cases and the background duties; each duty is `step(now) -> when to call me again`."""
