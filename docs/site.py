"""What the site has besides the pages of this directory: the README, the changelog and others like them.

They stay where their readers look for them; here they become pages, and links to them and from them are
put right. MkDocs calls these functions (`hooks` in mkdocs.yml).
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]

PAGES: Mapping[str, str] = {
    "index.md": "README.md",
    "changelog.md": "CHANGELOG.md",
    "sdk.md": "client/README.md",
    "security.md": "SECURITY.md",
    "conduct.md": "CODE_OF_CONDUCT.md",
}
"""Page of the site to the file it is made of."""


def on_files(files: Files, config: Any) -> Files:
    """Add the pages."""
    for page, source in PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        depth = "../" * source.count("/")
        text = text.replace(f"]({depth}docs/", "](").replace(
            "](LICENSE)", "](https://www.apache.org/licenses/LICENSE-2.0)"
        )
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Files) -> str:
    """Turn links to files outside this directory into links to their pages."""
    depth = "../" * page.file.src_uri.count("/")
    for target, source in PAGES.items():
        markdown = markdown.replace(f"]({depth}../{source}", f"]({depth}{target}")
        markdown = markdown.replace(f"]({source}", f"]({depth}{target}")
    return markdown
