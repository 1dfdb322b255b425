"""The only training loop, and what may look on while it runs."""
