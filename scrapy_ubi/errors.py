"""What can go wrong, by whose fault.

Everything raised on purpose descends from `UbiError`; each leaf says who has to act. One sentence per error, written
for the person who started the crawl. What comes from the web or by mail is data, never an error: a malformed URL gives
None, a malformed letter a reason and a count.
"""

from __future__ import annotations


class UbiError(Exception):
    """Root of all errors of this package; its text is one clear sentence."""


class UbiSettingError(UbiError):
    """The user's settings do not hold. `setting` is the name to look for, `remedy` what to do about it."""

    def __init__(self, setting: str, problem: str, remedy: str) -> None:
        self.setting = setting
        self.remedy = remedy
        super().__init__(f"{setting} {problem}: {remedy}.")


class UbiRefused(UbiError):
    """This agent may not join this crawl as it is: its identifier is in use, or it differs from the other agents."""


class UbiDirectoryError(UbiError):
    """The agent's directory cannot be used: held by another process, another agent's, or not writable."""


class UbiUnavailable(UbiError):
    """Something outside that the crawl needs cannot be reached: the operator has to start or repair it."""
