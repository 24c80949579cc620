"""The shape of answers, as OpenAPI shows them, by noun. Most are built in `answers`; tests hold the two together."""
