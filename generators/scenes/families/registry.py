"""The families by name."""

from collections.abc import Mapping

from eqforge.generators.scenes.families.base import Family
from eqforge.generators.scenes.families.beside import Beside
from eqforge.generators.scenes.families.between import Between
from eqforge.generators.scenes.families.facing import Turned
from eqforge.generators.scenes.families.graded import Graded
from eqforge.generators.scenes.families.posture import Tipped
from eqforge.generators.scenes.families.row import Row
from eqforge.generators.scenes.families.support import Support
from eqforge.generators.scenes.families.trim import Trimmed
from eqforge.generators.scenes.families.within import INSIDE, UNDER
from eqforge.schemas.records.scenes import Kind

_FAMILIES: tuple[Family, ...] = (
    *(Beside(), Between(), Row(), Support(), INSIDE, UNDER, Turned()),
    *(Tipped(), Trimmed(), Graded()),
)
FAMILIES: Mapping[Kind, Family] = {family.kind: family for family in _FAMILIES}
