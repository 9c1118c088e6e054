"""The plot of score against time."""

from pathlib import Path

from eqforge.evaluation.efficiency.pareto_command import Front
from eqforge.evaluation.plots.canvas import COLOURS, drawing, words
from eqforge.evaluation.plots.equivariance import finish


def draw_front(front: Front, title: str, path: Path) -> None:
    """Draws models with their intervals, and the front as a staircase through those on it.

    Each model is labelled with the probability that it is on the front.

    Args:
      front: as `eqforge pareto --output` wrote it.
      title: title of the plot.
      path: file to write.

    Source: VLUE (Zhou et al. 2022), figure 2.
    """
    on = sorted((m for m in front.models if m.on_front), key=lambda m: (m.seconds, m.score))
    with drawing(path) as axes:
        axes.step(
            [1000 * model.seconds for model in on],
            [model.score for model in on],
            where="post",
            color="#999999",
            linewidth=1,
            zorder=1,
        )
        for place, model in enumerate(front.models):
            x, y = 1000 * model.seconds, model.score
            axes.errorbar(
                x,
                y,
                xerr=[
                    [max(0, x - 1000 * model.seconds_low)],
                    [max(0, 1000 * model.seconds_high - x)],
                ],
                yerr=[[max(0, y - model.score_low)], [max(0, model.score_high - y)]],
                marker="o" if model.on_front else "x",
                color=COLOURS[0] if model.on_front else COLOURS[1],
                markersize=5,
                elinewidth=0.8,
                linestyle="none",
            )
            axes.annotate(
                f"{words(model.model)} ({model.probability:.2f})",
                (x, y),
                textcoords="offset points",
                xytext=(5, -9 if place % 2 else 4),  # labels of neighbours alternate in height
                fontsize=7,
            )
        axes.margins(x=0.25, y=0.12)
        finish(axes, title, "milliseconds for an image with a caption", front.what)
