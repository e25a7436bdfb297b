"""What mkdocs calls while it builds the site: pages made from the code, and Markdown as GitHub reads it."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, Any

from pymdownx.slugs import slugify
from tools.site import api, catalogues
from tools.site.markdown import LINK, adapt, block_of

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

EXAMPLES = "examples/"
SHOWN = "files/"
"""Where files of the repository that pages link to are shown."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Name the anchors of headings as GitHub does."""
    config.mdx_configs.setdefault("toc", {})["slugify"] = slugify(case="lower")
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made from the code."""
    from mkdocs.structure.files import File

    made = {**dict(api.pages()), **dict(catalogues.pages())}
    for path in sorted({path for page in files.documentation_pages() for path in _outside(page)}):
        text = (catalogues.ROOT / path).read_text("utf-8")
        made[f"{SHOWN}{path}.md"] = f"# {path}\n\n{block_of(text, 'sh')}"
    for path, text in made.items():
        files.append(File.generated(config, path, content=text))
    return files


def _outside(page: Any) -> list[str]:
    """Return the files outside of docs/ that a page links to, but for examples, which have a page."""
    linked = [_from_root(page.src_uri, target) for _, target in LINK.findall(page.content_string)]
    return [path for path in linked if path and not path.startswith(EXAMPLES)]


def _from_root(page: str, target: str) -> str:
    """Return the path in the repository of a link that leaves docs/; "" for other links."""
    path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), target))
    return "" if "://" in target or path.startswith("docs/") else path


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Return a page as mkdocs reads it; links that leave docs/ lead to where their file is shown."""
    here = page.file.src_uri

    def place(match: Any) -> str:
        path = _from_root(here, match[2])
        if not path:
            return match[0]
        stem = path.removeprefix(EXAMPLES).removesuffix(".py")
        shown = f"examples.md#{stem}" if path.startswith(EXAMPLES) else f"{SHOWN}{path}.md"
        return match[1] + posixpath.relpath(shown, posixpath.dirname(here) or ".")

    return LINK.sub(place, adapt(markdown))
