"""Protection against DNS rebinding: the host names that requests may use.

A page of any site can make a browser send requests to the visitor's own machine and, once the name
of the site resolves to 127.0.0.1, read the answers. The browser sends the name in `Host`, and the
name of the page's site in `Origin`.
"""

import ipaddress
import re
from collections.abc import Iterable

ANY = "*"
_AUTHORITY = re.compile(r"(?:\[([0-9a-f:.%]+)\]|([^\s\[\]@/?#:,]+))(?::[0-9]*)?")
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://(.*)")


class AllowedHosts:
    """The host names that requests may use.

    Args:
        host: Address on which the server listens. If other machines can reach it, every name is
            accepted unless `names` are given.
        names: Additional names or addresses, without ports; "*" accepts all.
    """

    def __init__(self, host: str, names: Iterable[str] = ()) -> None:
        names = {_plain(name) for name in names}
        self._any = ANY in names or not (names or is_loopback(host))
        self._names = names | {_plain(host)}

    def refused(self, headers: Iterable[tuple[bytes, bytes]]) -> str | None:
        """Returns the problem of a request's headers, or None.

        A request without `Host`, which HTTP/1.0 allows, does not come from a browser.

        Args:
            headers: Names in lower case, and values.
        """
        if self._any:
            return None
        for name, value in headers:
            text = value.decode("latin-1").strip().lower()
            if name == b"host" and not self._accepts(_AUTHORITY.fullmatch(text)):
                return f"The host name {text[:100]!r} is not allowed (see --allowed-hosts)."
            if name == b"origin":
                origin = _ORIGIN.fullmatch(text)
                if not self._accepts(origin and _AUTHORITY.fullmatch(origin[1])):
                    return f"Pages of {text[:100]!r} are not allowed here (see --allowed-hosts)."
        return None

    def _accepts(self, authority: re.Match | None) -> bool:
        if authority is None:
            return False
        name = _plain(authority[1] or authority[2])
        return name in self._names or is_loopback(name)


def is_loopback(host: str) -> bool:
    """Whether a name or an address is local, so that no other machine can reach it.

    Examples:
        >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
        (True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_host(name: str) -> bool:
    """Whether a text is a name or an address without a port, or "*".

    Examples:
        >>> is_host("g2p.example.org"), is_host("192.168.0.7"), is_host("g2p.example.org:8501")
        (True, True, False)
    """
    name = name.lower()
    try:
        return bool(ipaddress.ip_address(name.strip("[]")))
    except ValueError:
        match = _AUTHORITY.fullmatch(name)
        return name == ANY or bool(match and match[2] == name)


def _plain(name: str) -> str:
    """The normalized name, for comparison."""
    name = name.strip("[]").lower()
    return name.removesuffix(".")
