"""Coverage-guided fuzzing of the normal forms with atheris: the laws of `laws.py`, for as long as one likes.

    pip install atheris
    python -m tests.urls.fuzz -runs=1000000 [-max_len=200] [directory of inputs to begin with and to add to]

The first half of the inputs are read as text (UTF-8, where it is none as lone surrogates), the others as a list of
`TOKENS` and text between them. libFuzzer prints the input that breaks a law and writes it to `crash-...`; given as an
argument that file is run alone. Not a test that pytest collects: atheris is no dependency of the project.
"""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["scrapy_ubi.urls"]):
    from tests.urls.laws import TOKENS, check


def text_of(data: bytes) -> str:
    """The text that an input stands for."""
    if not data or data[0] < 128:
        return data[1:].decode("utf-8", "surrogateescape")
    pieces = [TOKENS[byte - 128] if 0 <= byte - 128 < len(TOKENS) else chr(byte % 128) for byte in data[1:]]
    return "".join(pieces)


def main() -> None:
    atheris.Setup(sys.argv, lambda data: check(text_of(data)))
    atheris.Fuzz()


if __name__ == "__main__":
    main()
