"""MkDocs hook: load the search script from the site, so that search works offline."""

from typing import Any

FROM_ELSEWHERE = "https://unpkg.com/iframe-worker/shim"
FROM_HERE = "javascripts/iframe-worker.js"


def on_post_page(output: str, *, page: Any, config: Any) -> str:
    """Replace the only external address of a page."""
    return output.replace(FROM_ELSEWHERE, "../" * page.url.count("/") + FROM_HERE)


def on_post_template(output_content: str, **_: Any) -> str:
    """Replace it in 404.html."""
    return output_content.replace(FROM_ELSEWHERE, FROM_HERE)
