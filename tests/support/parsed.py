"""Python sources as trees."""

from __future__ import annotations

import ast


def parsed(text: str) -> ast.Module:
    """The tree of a source; read once more where Python code that ran in between (a finalizer, another thread) parsed
    something too: Python 3.11 takes that for an error of its own (python/cpython#106905)."""
    for _ in range(3):
        try:
            return ast.parse(text)
        except SystemError as error:
            if "recursion depth mismatch" not in str(error):
                raise
    return ast.parse(text)
