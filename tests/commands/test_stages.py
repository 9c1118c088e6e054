from eqforge.pipelines import stages_of
from eqforge.schemas.tables.datasets import DATASETS


def test_a_stage_is_the_same_in_every_pipeline() -> None:
    found = [stage for name in DATASETS for stage in stages_of(name).values()]
    assert len({id(stage) for stage in found}) == len({stage.name for stage in found}) > 10


def test_only_documented_reasons_and_exceptions_may_be_given() -> None:
    stages = stages_of("eq-video")
    assert stages["frames"].may_reject_for("face_found")
    assert stages["pairs"].may_reject_for("error:ValueError")
    assert not stages["pairs"].may_reject_for("face_found")
