"""Files that tests write."""


def written(path, lines):
    """Writes lines to a file, and returns its name."""
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)
