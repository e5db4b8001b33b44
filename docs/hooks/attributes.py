"""Attributes in the reference: described by their class, not by the type of their value."""

import griffe

_OF_TYPES = {
    (kind.__doc__ or "").split("\n", 1)[0]
    for kind in (int, float, str, bool, bytes, list, tuple, dict, set, frozenset, type(None), type)
}


class PlainAttributes(griffe.Extension):
    """Takes away what Python says of `int`, `str` and the like."""

    def on_attribute_instance(self, *, attr: griffe.Attribute, **_) -> None:
        """Looks at one attribute."""
        text = attr.docstring.value if attr.docstring else ""
        if text.split("\n", 1)[0] in _OF_TYPES or text.startswith("Alias for field number"):
            attr.docstring = None
