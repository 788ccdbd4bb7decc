"""The hosts under which a server may be asked, and the hosts that its ``evaluate`` may ask."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from ipaddress import IPv6Address, ip_address, ip_network
from urllib.parse import urlsplit


def is_loopback(host: str) -> bool:
    """Returns whether an address can be reached from this machine only."""
    return host == "localhost" or (_is_address(host) and ip_address(host).is_loopback)


def is_own_name(header: str, hosts: Sequence[str]) -> bool:
    """Returns whether a request with this header ``Host`` was meant for the server.

    A page from the internet can point its own name at an address in the reader's network (DNS rebinding). The
    browser then lets the page talk to that address, but under the page's name. Such a name has a dot.

    Args:
        header: The header, with or without a port; "" if there is none, which no browser does.
        hosts: Patterns of further names, as "*.example.org".
    """
    name = _host_of(header)
    return not header or _is_address(name) or (bool(name) and "." not in name) or fits(name, hosts)


def fits(host: str, patterns: Sequence[str]) -> bool:
    """Returns whether a host's name fits one of the patterns, in which "*" is any text."""
    return any(fnmatchcase(host.lower(), pattern.lower()) for pattern in patterns)


def name_caller(address: str) -> str:
    """Returns the caller that shares are counted by: an address, or the network of 64 bits of IPv6."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, IPv6Address):
        if found.ipv4_mapped is not None:
            return str(found.ipv4_mapped)
        return str(ip_network((found, 64), strict=False))
    return str(found)


def _host_of(header: str) -> str:
    try:
        return (urlsplit(f"//{header}").hostname or "").rstrip(".")
    except ValueError:
        return ""


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
