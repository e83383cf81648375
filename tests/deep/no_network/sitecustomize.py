"""Python imports this at start where its folder is on PYTHONPATH.

Sockets reach this machine and nothing else, so that a lesson which fetches something
fails at once. Modules that ABSENT_MODULES names cannot be imported.
"""

import os
import socket
from importlib.machinery import PathFinder

find_address, find_spec = socket.getaddrinfo, PathFinder.find_spec
absent = frozenset(os.environ.get("ABSENT_MODULES", "").split())


def demand_this_machine(host):
    """Raise OSError for the name or address of another machine."""
    host = host.decode() if isinstance(host, bytes) else host or ""
    if host not in ("", "localhost", "::1") and not host.startswith("127."):
        raise OSError(f"a lesson must run without the network, but it asked for {host}")


def guarded(method):
    """Return a method of sockets, which takes an address last, for this machine."""

    def call(self, *arguments):
        if isinstance(arguments[-1], tuple):
            demand_this_machine(arguments[-1][0])
        return method(self, *arguments)

    return call


def getaddrinfo(host, *args, **kwargs):
    demand_this_machine(host)
    return find_address(host, *args, **kwargs)


for name in ("connect", "connect_ex", "sendto"):
    setattr(socket.socket, name, guarded(getattr(socket.socket, name)))
socket.getaddrinfo = getaddrinfo
PathFinder.find_spec = staticmethod(
    lambda name, *rest: (
        None if name.partition(".")[0] in absent else find_spec(name, *rest)
    )
)
