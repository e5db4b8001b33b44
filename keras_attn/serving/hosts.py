"""Which names a request may use for the server.

A page of any site can make its visitor's browser send requests to the visitor's own machine, and,
once the site's name resolves to 127.0.0.1, read the answers (DNS rebinding). The browser tells the
name in `Host`, and the page's own in `Origin`.
"""

import ipaddress
import re
from collections.abc import Iterable

ANY = "*"
_AUTHORITY = re.compile(r"(?:\[([0-9a-f:.%]+)\]|([^\s\[\]@/?#:,]+))(?::[0-9]*)?")
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://(.*)")


class AllowedHosts:
    """The names that requests may use.

    Args:
        host: Where the server listens. Every name is accepted on an address that other machines
            can reach, unless names are given.
        names: Further names or addresses, without ports; "*" accepts all.
    """

    def __init__(self, host: str, names: Iterable[str] = ()) -> None:
        names = {_plain(name) for name in names}
        self._any = ANY in names or not (names or is_loopback(host))
        self._names = names | {_plain(host)}

    def refused(self, headers: Iterable[tuple[bytes, bytes]]) -> str | None:
        """Returns what is wrong with the headers of a request, or None.

        A request without `Host`, which HTTP/1.0 allows, comes from no browser.

        Args:
            headers: Names in lower case, and values.
        """
        if self._any:
            return None
        for name, value in headers:
            text = value.decode("latin-1").strip().lower()
            if name == b"host" and not self._accepts(_AUTHORITY.fullmatch(text)):
                return f"The host {text[:100]!r} is not served here (see --allowed-hosts)."
            if name == b"origin":
                origin = _ORIGIN.fullmatch(text)
                if not self._accepts(origin and _AUTHORITY.fullmatch(origin[1])):
                    return f"Pages of {text[:100]!r} may not ask this server (see --allowed-hosts)."
        return None

    def _accepts(self, authority: re.Match | None) -> bool:
        if authority is None:
            return False
        name = _plain(authority[1] or authority[2])
        return name in self._names or is_loopback(name)


def is_loopback(host: str) -> bool:
    """Whether a name or an address is this machine's own, which no other machine can reach."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_host(name: str) -> bool:
    """Whether a text is a name or an address without a port, or "*"."""
    name = name.lower()
    try:
        return bool(ipaddress.ip_address(name.strip("[]")))
    except ValueError:
        match = _AUTHORITY.fullmatch(name)
        return name == ANY or bool(match and match[2] == name)


def _plain(name: str) -> str:
    """The name as it is compared."""
    name = name.strip("[]").lower()
    return name.removesuffix(".")
