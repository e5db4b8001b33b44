"""Reading of files of any form: compressed, encoded, as lines or as tables."""
