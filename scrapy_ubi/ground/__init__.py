"""What everything stands on: the one clock, and checks of data from outside."""
