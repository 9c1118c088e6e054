"""Engines that several tests of this folder share: they take long to start."""

from collections.abc import Iterator

import pytest

from tests.runners.stores import Store, running_store, server
from tests.runners.tiers import FLINK_HOME, JAR, Cluster, need, running_cluster


@pytest.fixture(scope="session")
def flink_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A JobManager and two TaskManagers."""
    need("flink-cluster", JAR, FLINK_HOME)
    with running_cluster(tmp_path_factory.mktemp("flink") / "cluster") as cluster:
        yield cluster


@pytest.fixture(params=["gs", "s3"])
def store(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """An object store of its own."""
    need("object-stores")
    server(request.param)
    monkeypatch.setenv("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")
    with running_store(request.param) as found:
        yield found
