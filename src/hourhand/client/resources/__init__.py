"""The endpoints by noun, each written once: which request it is, and what of the answer is given back."""
