"""Data from outside: checked, and made fit for a terminal. Nothing in here knows the rest of the package."""
