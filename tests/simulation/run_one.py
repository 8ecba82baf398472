from __future__ import annotations

import sys
import traceback
from random import Random

from tests.simulation.checkers import Violation
from tests.simulation.world import World


def scenario(seed, faults=True, replication=1):
    w = World(seed, replication=replication)
    r = Random(seed * 7 + 1)
    n = r.randint(1, 5)
    for i in range(n):
        w.at(r.uniform(0, 2), lambda i=i: w.start(f"a{i}"))
    dups = 0
    if faults:
        kind = r.choice(
            ["none", "join", "leave", "crash", "pause", "amnesia", "down", "cut", "lossy", "restart", "joinleave"]
        )
        t = r.uniform(2, 8)

        def pick():
            al = w.alive()
            return r.choice(al) if al else None

        crashy = None
        if kind == "join":
            w.at(t, lambda: w.start("b0", seeds=False))
        if kind == "leave" and n > 1:
            w.at(t, lambda: (p := pick()) and p.leave())
        if kind == "joinleave":
            w.at(t, lambda: w.start("b0", seeds=False))
            w.at(t + r.uniform(0, 3), lambda: (p := pick()) and len(w.alive()) > 1 and p.leave())
        if kind == "crash" and n > 1:
            w.at(t, lambda: (p := pick()) and len(w.alive()) > 1 and p.crash())
            crashy = True
        if kind == "restart" and n > 1:

            def restart():
                p = pick()
                if p and len(w.alive()) > 1:
                    p.crash()
                    w.start(p.name)

            w.at(t, restart)
            crashy = True
        if kind == "pause":
            w.at(t, lambda: (p := pick()) and p.pause(r.uniform(1, 12)))
            crashy = True
        if kind == "amnesia":
            w.at(t, lambda: w.redis.forget())
        if kind == "down":
            d = r.uniform(0.5, 12)

            def down():
                w.redis.up = False
                w.redis.forget()

            def up():
                w.redis.up = True

            w.at(t, down)
            w.at(t + d, up)
            crashy = True  # cancelled loads
        if kind == "cut":
            d = r.uniform(0.5, 12)

            def cut():
                p = pick()
                if p:
                    p.cut = True
                    w.at(w.now + d, lambda: setattr(p, "cut", False))

            w.at(t, cut)
            crashy = True
        if kind == "lossy":

            def a():
                w.loss = r.choice([0.02, 0.1, 0.3])
                w.duplication = 0.1
                w.slow = r.choice([0.005, 0.05, 0.3])

            def b():
                w.loss = w.duplication = 0
                w.slow = 0.005

            w.at(t, a)
            w.at(t + 5, b)
            crashy = True
        dups = None if crashy else 0
        w.kind = kind
    w.at(2.5, lambda: None)
    w.run(200)
    w.referee.judge(dups)
    return w


if __name__ == "__main__":
    lo, hi = int(sys.argv[1]), int(sys.argv[2])
    bad = {}
    import collections

    ends = collections.Counter()
    kinds = collections.Counter()
    for s in range(lo, hi):
        w = None
        try:
            w = scenario(s)
            kinds[w.kind] += 1
        except Violation as e:
            print("seed", s, str(e)[:700])
        except Exception:
            print("seed", s)
            traceback.print_exc()
            break
    print(kinds)
