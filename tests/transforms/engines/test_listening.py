"""What may open ports to other hosts is refused; what does not answer is not waited for."""

import socket

import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from eqforge.core.errors import InputError
from eqforge.transforms.engines.listening import check_ports
from eqforge.transforms.engines.options import check_endpoint

POOL = ["--runner=PortableRunner", "--job_endpoint=embed", "--environment_type=EXTERNAL"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--runner=FnApiRunner"],
        ["--runner=DataflowRunner"],
        ["--runner=FlinkRunner", "--flink_master=host:1", "--flink_submit_uber_jar"],
        ["--runner=FlinkRunner", "--job_endpoint=host:1"],
        ["--runner=PortableRunner", "--job_endpoint=embed"],
        [*POOL, "--environment_config=localhost:50"],
        [*POOL, "--environment_config=[::1]:50"],
    ],
)
def test_what_listens_at_the_loopback_is_taken(arguments: list[str]) -> None:
    check_ports(PipelineOptions(arguments))


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["--runner=PrismRunner"], "--runner PrismRunner listens on all network addresses"),
        (["--runner=FlinkRunner"], "--runner FlinkRunner listens on all network addresses"),
        (["--runner=SparkRunner"], "--runner SparkRunner listens on all network addresses"),
        ([*POOL, "--environment_config=example.org:50"], "--environment_config example.org:50"),
        ([*POOL, "--environment_config=localhost.example.org:50"], "--environment_config local"),
    ],
)
def test_what_may_listen_to_other_hosts_needs_the_user_s_word(
    arguments: list[str], what: str
) -> None:
    with pytest.raises(InputError) as refused:
        check_ports(PipelineOptions(arguments))
    assert str(refused.value).startswith(what)
    assert "pass --allow_open_ports" in str(refused.value)
    check_ports(PipelineOptions([*arguments, "--allow_open_ports"]))


def test_a_job_server_that_is_not_there_is_one_sentence_at_once() -> None:
    """That of the refused connection, not that of the end of the wait."""
    sentence = (
        "--job_endpoint localhost:1: no job server answers at this address: .*Connection refused"
    )
    with pytest.raises(InputError, match=sentence):
        check_endpoint(PipelineOptions(["--job_endpoint=localhost:1"]))


def test_a_job_server_that_says_nothing_is_not_waited_for() -> None:
    with socket.create_server(("localhost", 0)) as silent:
        endpoint = f"localhost:{silent.getsockname()[1]}"
        with pytest.raises(InputError, match=f"--job_endpoint {endpoint}: no job server answers"):
            check_endpoint(PipelineOptions([f"--job_endpoint={endpoint}"]), timeout_s=0.5)
