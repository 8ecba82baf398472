"""This process: its agent directory, its errors, its arguments and what it logs."""
