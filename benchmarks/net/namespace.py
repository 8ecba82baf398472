"""A network of this benchmark's own: a namespace with the loopback device and nothing else.

In it the testbed can have the ports 443 and 53, the machine's DNS is the testbed's (`/etc/resolv.conf`), and the kernel
itself makes sure that no other address is contacted: it has no route to any, and counts who tries (`OutNoRoutes`).
Where the system does not allow namespaces (a container without them), the benchmark takes ports that are free, and
crawlers are told the DNS by their settings; that no other address was contacted is not shown then.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

INSIDE = "UBI_TESTBED_NAMESPACE"  # in the environment of the process that is in it
DNS = "127.0.0.2"
_PROGRAM = 'ip link set lo up && mount --bind "$1" /etc/resolv.conf && shift && exec "$@"'


def enter(resolv_conf: Path) -> bool:
    """Start this program again inside a namespace (it does not return then); False where that cannot be, or has
    happened."""
    if INSIDE in os.environ or shutil.which("unshare") is None or shutil.which("ip") is None:
        return False
    resolv_conf.write_text(f"nameserver {DNS}\noptions timeout:2 attempts:2\n", encoding="ascii")
    enters = ["unshare", "--map-root-user", "--net", "--mount", "sh", "-c", _PROGRAM, "sh", str(resolv_conf)]
    if subprocess.run([*enters, "true"], capture_output=True, check=False).returncode:
        return False
    os.environ[INSIDE] = "1"
    return bool(os.execvp("unshare", [*enters, sys.executable, *sys.argv]))  # it never does


def is_inside() -> bool:
    """Whether this process is in such a namespace."""
    return INSIDE in os.environ


def refused() -> int:
    """How often someone in this namespace has tried to reach an address that is not loopback's."""
    lines = [line.split() for line in Path("/proc/net/snmp").read_text(encoding="ascii").splitlines()]
    names, values = (line[1:] for line in lines if line[0] == "Ip:")
    return int(dict(zip(names, values, strict=True))["OutNoRoutes"])
