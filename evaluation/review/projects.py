"""Writes tasks for a server of Label Studio: a config, tasks, and a page that leads on."""

from collections.abc import Mapping
from typing import Any

from eqforge.core.files import storage
from eqforge.evaluation.report.folder import Folder, rendered, write_assets, write_page
from eqforge.evaluation.review import label_studio
from eqforge.evaluation.review.dealt import Dealt
from eqforge.evaluation.review.votes import FORMAT, VERSION


def home_of(output: str, plan: str) -> str:
    """Returns the folder of a plan's tasks and pictures: below the one that a server serves."""
    return storage.join(output, f"data/{label_studio.place_of(plan)}")


def write_projects(output: str, dealt: Dealt) -> None:
    """Writes the tasks of each reviewer who has any, a config for all, and a page that leads on."""
    folder, home = Folder(output), Folder(home_of(output, dealt.plan))
    shown = {name: dealt.show(name, tasks) for name, tasks in dealt.busy.items()}
    every = [item for items in shown.values() for item in items]
    pictures, texts = (max(len(item[part]) for item in every) for part in ("panes", "texts"))
    config = label_studio.config_of(dealt.protocol, pictures, texts)
    home.write("config.xml", config)
    for reviewer, tasks in dealt.busy.items():
        file = {**dealt.about, "format": FORMAT, "format_version": VERSION, "tasks": len(tasks)}
        file["reviewer"] = reviewer
        items = shown[reviewer]
        pages = [_page(item, dealt.plan) for item in items]
        said = label_studio.tasks_of(dealt.protocol, file, tasks, items, pages, config)
        home.write(f"tasks-{reviewer}.json", said)
    write_assets(folder)
    place = label_studio.place_of(dealt.plan)
    context = {"place": place, "reviewers": dealt.reviewers, **dealt.shared}
    write_page(folder, "label_studio.html", "index.html", here="", **context)


def _page(item: Mapping[str, Any], plan: str) -> str:
    """Returns what a task shows; a picture that cannot be decoded is not there."""
    panes = [
        {**pane, "address": label_studio.address(plan, pane["thumb"] and pane["file"])}
        for pane in item["panes"]
    ]
    return rendered("label_studio_item.html", panes=panes, texts=item["texts"])
