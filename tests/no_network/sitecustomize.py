"""Python imports this at start where its folder is on PYTHONPATH.

It lets sockets reach this machine and nothing else, so that a lesson which
fetches something fails at once, with or without a network.
"""

import re
import socket

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
