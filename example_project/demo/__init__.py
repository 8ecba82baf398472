"""The demo: a little web of many hosts on loopback, and three agents that crawl it.

graph.py   the web as a pure function of (seed, hosts, pages), and the truth about what is reachable
record.py  the access log: unique pages, duplicates, simultaneous requests per host
wire.py    HTTP/1.1, as much of it as is needed
web.py     a forward proxy that is also the origin of every host
servers.py the web and a Valkey, for playing by hand with the steps beside this directory
run.py     what `make demo` starts
faults.py  the agent that is killed meanwhile, the one that joins, and what follows
verdict.py what the web says about the crawl, held against the truth
"""
