"""What an index of packages is told of the repository. hatchling asks this while it builds (pyproject.toml).

Links of the README are relative, so that they hold in a checkout, and an index shows the README alone. With
`REPOSITORY=https://host/owner/scrapy-ubi` in the environment (`make package`) they lead to the files of this version in
the repository, and the index names it. Where the repository lies is no fact of the tree.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

try:
    from hatchling.metadata.plugin.interface import MetadataHookInterface
except ImportError:  # it is there only where a package is built
    MetadataHookInterface = object

_link = re.compile(r"(\]\()(?![a-z][a-z0-9+.-]*:|#)([^)\s]+\))")  # of Markdown, and relative


def absolute(text: str, repository: str, version: str) -> str:
    """Make each relative link of a page of Markdown lead to the repository's file of this version; '': no change."""
    return _link.sub(rf"\1{repository}/blob/v{version}/\2", text) if repository else text


class IndexMetadata(MetadataHookInterface):
    """Gives the README, and the addresses of the project."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add what pyproject.toml calls dynamic."""
        repository = os.environ.get("REPOSITORY", "").rstrip("/")
        text = absolute((Path(self.root) / "README.md").read_text(), repository, metadata["version"])
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
        metadata["urls"] = {}
        if repository:
            files = f"{repository}/blob/v{metadata['version']}"
            metadata["urls"] = {
                "Repository": repository,
                "Documentation": f"{files}/docs/README.md",
                "Changelog": f"{files}/CHANGELOG.md",
            }
