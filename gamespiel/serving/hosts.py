"""The hosts under which a server may be asked, and the hosts that its ``evaluate`` may ask."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import urlsplit


def is_loopback(host: str) -> bool:
    """Returns whether an address can be reached from this machine only."""
    address = _read_address(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def is_own_name(header: str, hosts: Sequence[str]) -> bool:
    """Returns whether a request with this header ``Host`` was meant for the server.

    A page from the internet can point its own name at an address in the reader's network (DNS rebinding). The
    browser then lets the page talk to that address, but under the page's name. Such a name has a dot.

    Args:
        header: The header, with or without a port; "" if there is none, which no browser does.
        hosts: Patterns of further names, as "*.example.org".
    """
    try:
        name = (urlsplit(f"//{header}").hostname or "").rstrip(".")
    except ValueError:
        name = ""
    is_local = _read_address(name) is not None or (bool(name) and "." not in name)
    return not header or is_local or fits(name, hosts)


def fits(host: str, patterns: Sequence[str]) -> bool:
    """Returns whether a host's name fits one of the patterns, in which "*" is any text."""
    return any(fnmatchcase(host.lower(), pattern.lower()) for pattern in patterns)


def name_caller(address: str) -> str:
    """Returns the caller that shares are counted by: an address, or the network of 64 bits of IPv6."""
    ip = _read_address(address.partition("%")[0])
    if isinstance(ip, IPv6Address):
        return str(ip.ipv4_mapped or ip_network((ip, 64), strict=False))
    return address if ip is None else str(ip)


def _read_address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None
