"""The distributed protocol, sans-IO: no Scrapy, Redis, disk, clock or thread is imported here.

Time comes in as arguments (seconds of the caller's monotonic clock), identifiers as a callable; what is to be done
comes out as data (`agent.Effects`). The simulator in tests/simulation runs this same code.
"""
