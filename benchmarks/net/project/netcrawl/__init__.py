"""The project that every system crawls the testbed with."""
