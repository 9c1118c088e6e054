"""A hook of mkdocs: the search of a site that lies in a folder takes its part from the site."""

from typing import Any

FROM_ELSEWHERE = "https://unpkg.com/iframe-worker/shim"
FROM_HERE = "javascripts/iframe-worker.js"


def on_post_page(output: str, *, page: Any, config: Any) -> str:
    """Returns a page without its only address outside the site."""
    return output.replace(FROM_ELSEWHERE, "../" * page.url.count("/") + FROM_HERE)


def on_post_template(output_content: str, **_: Any) -> str:
    """Returns 404.html, likewise."""
    return output_content.replace(FROM_ELSEWHERE, FROM_HERE)
