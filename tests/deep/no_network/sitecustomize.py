"""Python imports this at start where its folder is on PYTHONPATH.

It lets sockets reach this machine and nothing else, so that a lesson which
fetches something fails at once, with or without a network. Modules that the
variable ABSENT_MODULES names cannot be imported, as if nobody had installed them.
"""

import os
import re
import socket
from importlib.machinery import PathFinder

MESSAGE = "a lesson must run without the network, but it asked for"

real_getaddrinfo = socket.getaddrinfo


def is_this_machine(host):
    """Whether a host name or address means this machine."""
    return host in ("", "localhost", "::1") or bool(
        re.fullmatch(r"127\.\d+\.\d+\.\d+", host)
    )


def guarded(name):
    """A socket method that takes an address last, for this machine only."""
    real = getattr(socket.socket, name)

    def method(self, *args):
        address = args[-1]
        if isinstance(address, tuple) and not is_this_machine(str(address[0])):
            raise OSError(f"{MESSAGE} {address[0]}")
        return real(self, *args)

    return method


def getaddrinfo(host, *args, **kwargs):
    """socket.getaddrinfo, for names of this machine only."""
    name = host.decode() if isinstance(host, bytes) else host
    if name and not is_this_machine(name):
        raise OSError(f"{MESSAGE} {name}")
    return real_getaddrinfo(host, *args, **kwargs)


for name in ("connect", "connect_ex", "sendto"):
    setattr(socket.socket, name, guarded(name))
socket.getaddrinfo = getaddrinfo

absent = frozenset(os.environ.get("ABSENT_MODULES", "").split())
real_find_spec = PathFinder.find_spec


def find_spec(name, path=None, target=None):
    """PathFinder.find_spec, which finds no absent module."""
    if name.partition(".")[0] not in absent:
        return real_find_spec(name, path, target)


PathFinder.find_spec = staticmethod(find_spec)
