"""Python imports this at start where its folder is on PYTHONPATH.

It lets sockets reach this machine and nothing else, so that a lesson which
fetches something fails at once, with or without a network.
"""

import socket

LOOPBACK = ("127.", "::1", "localhost")
MESSAGE = "a lesson must run without the network, but it asked for"

real_connect = socket.socket.connect
real_getaddrinfo = socket.getaddrinfo


def connect(self, address):
    """socket.connect, for loopback and local sockets only."""
    is_remote = isinstance(address, tuple) and not str(address[0]).startswith(
        LOOPBACK
    )
    if is_remote:
        raise OSError(f"{MESSAGE} {address[0]}")
    return real_connect(self, address)


def getaddrinfo(host, *args, **kwargs):
    """socket.getaddrinfo, for names of this machine only."""
    name = host.decode() if isinstance(host, bytes) else host
    if name and not name.startswith(LOOPBACK):
        raise OSError(f"{MESSAGE} {name}")
    return real_getaddrinfo(host, *args, **kwargs)


socket.socket.connect = connect
socket.getaddrinfo = getaddrinfo
