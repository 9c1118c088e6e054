"""The JSON documents that commands print with `--json`, by command."""

from eqforge.commands.diff import Difference
from eqforge.commands.inspection import Inspection
from eqforge.commands.recipe import RecipeReport
from eqforge.commands.verify import Verification
from eqforge.evaluation.report.write import Report
from eqforge.evaluation.review.outcome import ReviewOutcome
from eqforge.evaluation.review.plan import ReviewPlan
from eqforge.generators.text.lints.command import LintReport
from eqforge.pipelines.base.plan import PlanReport
from eqforge.pipelines.base.runner import BuildReport
from eqforge.transforms.export.note import ExportNote

DOCUMENTS = {
    "plan": PlanReport,
    "build": BuildReport,
    "build --recipe": RecipeReport,
    "verify": Verification,
    "inspect": Inspection,
    "report": Report,
    "review plan": ReviewPlan,
    "review import": ReviewOutcome,
    "diff": Difference,
    "export": ExportNote,
    "lint": list[LintReport],
}
