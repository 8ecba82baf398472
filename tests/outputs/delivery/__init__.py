"""Tests of stores that give items to a receiver."""
