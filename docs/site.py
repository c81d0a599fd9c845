"""What the site has besides the pages of this directory: the README, the changelog and others like them.

They stay where their readers look for them; here they become pages, and links to them and from them are
put right. Each page is there as markdown, too, beside `llms.txt`, which lists them, and `llms-full.txt`,
which is all of them. MkDocs calls these functions (`hooks` in mkdocs.yml).
"""

import re
from collections.abc import Iterator, Mapping
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

KINDS = ("Tutorials", "How to", "Explanation", "Reference")
"""Sections of the site: what a page is for. Each page but the first one is in one of them."""

_texts: dict[str, str] = {}
_kinds: dict[str, list[str]] = {}


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


def pages_by_kind(nav: list[Any]) -> dict[str, list[str]]:
    """The pages of each section of mkdocs.yml, with those of its own sections."""

    def below(item: Any) -> Iterator[str]:
        if isinstance(item, str):
            yield item
        else:
            for one in item if isinstance(item, list) else item.values():
                yield from below(one)

    return {title: list(below(items)) for section in nav for title, items in section.items()}


def on_config(config: Any) -> Any:
    """Remember the sections."""
    _texts.clear()
    _kinds.clear()
    _kinds.update(pages_by_kind(config.nav))
    return config


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Files) -> str:
    """Turn links to files outside this directory into links to their pages."""
    depth = "../" * page.file.src_uri.count("/")
    for target, source in PAGES.items():
        markdown = markdown.replace(f"]({depth}../{source}", f"]({depth}{target}")
        markdown = markdown.replace(f"]({source}", f"]({depth}{target}")
    _texts[page.file.src_uri] = markdown
    return markdown


def on_post_build(config: Any) -> None:
    """Write every page as markdown, the list of them, and all of them in one."""
    site = Path(config.site_dir)
    for name, text in _texts.items():
        (site / name).write_text(text, encoding="utf-8")
    lines = [f"# {config.site_name}", "", f"> {config.site_description}", ""]
    for kind in KINDS:
        lines += [f"## {kind}", "", *(_line(name) for name in _kinds[kind]), ""]
    (site / "llms.txt").write_text("\n".join(lines), encoding="utf-8")
    ordered = [name for names in _kinds.values() for name in names]
    ordered += sorted(_texts.keys() - set(ordered))
    whole = "\n\n".join(f"<!-- {name} -->\n{_texts[name].strip()}" for name in ordered)
    (site / "llms-full.txt").write_text(whole + "\n", encoding="utf-8")


def _line(name: str) -> str:
    """A page, and the first sentence that it says."""
    title = re.findall(r"^# (.+)$", _texts[name], re.MULTILINE)[0]
    (paragraph,) = re.findall(r"^# .+\n+(?:#.+\n+)?((?:.+\n?)*)", _texts[name], re.MULTILINE)[:1]
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(paragraph.split()))
    sentence = re.split(r"(?<=[.!?]) ", text, maxsplit=1)[0].rstrip(":.")
    return f"- [{title}]({name}): {sentence}."
