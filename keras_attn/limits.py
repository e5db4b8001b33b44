"""Limits of files and models, with their defaults and environment variables.

They stop damaged or hostile files before these use up memory or time. Each limit is an environment
variable, so that it applies to the command line, Python and child processes. The reference page
`limits.md` lists them; limits of a server's requests are options of `keras-attn serve`.
"""

import dataclasses
import os

from keras_attn.validation import UserError, require


@dataclasses.dataclass(frozen=True)
class Limit:
    """A limit.

    Attributes:
        variable: Environment variable with another value.
        default: The value if the variable is not set.
        what: Name of the counted items in messages.
    """

    variable: str
    default: int
    what: str

    @property
    def value(self) -> int:
        """The current limit.

        Raises:
            UserError: The environment variable is not a positive integer.
        """
        text = os.environ.get(self.variable)
        if not text:
            return self.default
        whole = text.isascii() and text.isdecimal() and len(text) < 20 and int(text) > 0
        require(whole, f"{self.variable} must be a positive integer.", **{self.variable: text[:50]})
        return int(text)

    def check(self, count: int, place: str) -> None:
        """Checks a count against the limit.

        Args:
            count: The count; one above the limit if counting stopped there.
            place: Beginning of the message, such as the name of a file.

        Raises:
            UserError: The count exceeds the limit.
        """
        if count > self.value:
            raise UserError(
                f"{place}: at most {self.value:,} {self.what} are accepted. If this is intended, "
                f"set the environment variable {self.variable} to a larger number."
            )


FILE_BYTES = Limit(
    "KERAS_ATTN_MAX_FILE_BYTES", 256 << 20, "bytes of a JSON, vocabulary or tokenizer file"
)
YAML_BYTES = Limit("KERAS_ATTN_MAX_YAML_BYTES", 1 << 20, "bytes of YAML")
YAML_NODES = Limit("KERAS_ATTN_MAX_YAML_NODES", 100_000, "values of YAML, aliases written out,")
DEPTH = Limit("KERAS_ATTN_MAX_DEPTH", 100, "levels of nesting in JSON and YAML")
DECOMPRESSED_BYTES = Limit(
    "KERAS_ATTN_MAX_DECOMPRESSED_BYTES", 2 << 30, "bytes of a compressed file, once decompressed,"
)
COMPRESSION = Limit("KERAS_ATTN_MAX_COMPRESSION", 200, "bytes for each byte of a compressed file")
LINE_BYTES = Limit("KERAS_ATTN_MAX_LINE_BYTES", 16 << 20, "bytes of a line")
IMAGE_PIXELS = Limit("KERAS_ATTN_MAX_IMAGE_PIXELS", 1 << 26, "pixels of an image")
LAYERS = Limit("KERAS_ATTN_MAX_LAYERS", 1_000, "layers of a model")
PARAMETERS = Limit("KERAS_ATTN_MAX_PARAMETERS", 12_000_000_000, "parameters of a model")
HYPOTHESES = Limit("KERAS_ATTN_MAX_HYPOTHESES", 1_024, "beams, alternatives or samples of a text")
GENERATED_TOKENS = Limit(
    "KERAS_ATTN_MAX_GENERATED_TOKENS", 1 << 18, "tokens of all hypotheses of a text"
)
RULE_TOKENS = Limit(
    "KERAS_ATTN_MAX_RULE_TOKENS", 256, "tokens of `no_repeat_ngram` or of a banned text"
)
