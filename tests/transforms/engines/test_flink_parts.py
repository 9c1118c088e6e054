"""The parts of Flink: what is fetched is what the lock names, whole or not at all."""

import hashlib
import os
import re
import struct
import subprocess
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from eqforge.core.errors import InputError
from eqforge.core.identity import sha256_hex
from eqforge.transforms.engines import flink_parts
from eqforge.transforms.engines.flink_parts import (
    cluster_folder,
    job_server_folder,
    job_server_jar,
    locked_jars,
    setup_flink,
)

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EQFORGE_CACHE", str(tmp_path / "cache"))


def programs(folder: Path, **scripts: str) -> str:
    """A search path with these programs before all others."""
    folder.mkdir()
    for name, script in scripts.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def test_the_lock_names_every_jar_once_with_its_digest() -> None:
    jars = locked_jars()
    assert len({jar.file_name for jar in jars}) == len(jars) > 100
    named = {f"{jar.name}:{jar.version}" for jar in jars}
    series, beam = flink_parts.FLINK_SERIES, flink_parts.BEAM_JAVA
    assert {f"beam-runners-flink-{series}:{beam}", f"beam-sdks-java-core:{beam}"} <= named
    assert flink_parts.FLINK.startswith(f"{series}.")


def test_the_script_of_the_cluster_names_the_same_version() -> None:
    script = (ROOT / "deploy" / "flink" / "cluster").read_text()
    assert set(re.findall(r"flink-(\d+\.\d+\.\d+)", script)) == {flink_parts.FLINK}


def test_what_is_missing_is_said_with_the_command_that_brings_it() -> None:
    with pytest.raises(InputError, match=r"run `eqforge setup flink`, or name your own by --flink"):
        job_server_jar()


def test_without_maven_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    said: list[str] = []
    with pytest.raises(InputError, match=r"^mvn is not on this machine: install Maven"):
        setup_flink(said.append)
    assert "by Maven" in said[0]
    assert not job_server_folder().exists()


def test_maven_s_failure_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = "echo noise; echo '[ERROR] Could not find artifact a:b'; exit 1"
    monkeypatch.setenv("PATH", programs(tmp_path / "bin", mvn=script))
    with pytest.raises(InputError) as refused:
        setup_flink(lambda _: None)
    assert "failed: [ERROR] Could not find artifact a:b" in str(refused.value)
    assert "\n" not in str(refused.value)
    assert list(job_server_folder().parent.iterdir()) == []


def test_a_jar_that_is_not_the_locked_one_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A repository that serves something else under the right name."""
    names = " ".join(f"lib/{jar.file_name}" for jar in locked_jars())
    monkeypatch.setenv("PATH", programs(tmp_path / "bin", mvn=f"mkdir lib; touch {names}"))
    with pytest.raises(InputError, match=rf"its SHA-256 is {hashlib.sha256().hexdigest()}, exp"):
        setup_flink(lambda _: None)
    assert not job_server_folder().exists()


def test_the_project_handed_to_maven_pins_every_jar_and_nothing_else() -> None:
    pom = flink_parts._pom(locked_jars())
    for jar in locked_jars():
        assert f"<artifactId>{jar.name}</artifactId><version>{jar.version}</version>" in pom
    assert pom.count("<exclusion>") == pom.count("<dependency>") == len(locked_jars())


def server_factory() -> bytes:
    """Beam's class that opens ports in Java, in as much as it matters here: constants and a call.

    The tests of runners have the real one.
    """
    netty = f"L{flink_parts._NETTY};"
    texts = ["java/net/InetSocketAddress", "getPort", "()I", netty[1:-1], "forPort", f"(I){netty}"]
    pool = [struct.pack(">BH", 1, len(text)) + text.encode() for text in texts]
    for owner, name in ((1, 2), (4, 5)):  # constants 7 to 12: a class, a name and type, a method
        first = len(pool) + 1
        pool.append(struct.pack(">BH", 7, owner))
        pool.append(struct.pack(">BHH", 12, name, name + 1))
        pool.append(struct.pack(">BHH", 10, first, first + 1))
    head = struct.pack(">IHHH", 0xCAFEBABE, 0, 52, len(pool) + 1)
    return head + b"".join(pool) + b"\xb6\x00\x09\xb8\x00\x0c"


def core_alone(folder: Path) -> Path:
    """A folder of the job server with the one jar that its main jar mends."""
    (core,) = (jar for jar in locked_jars() if jar.name == flink_parts._CORE)
    (folder / "lib").mkdir(parents=True)
    with zipfile.ZipFile(folder / "lib" / core.file_name, "w") as archive:
        archive.writestr(flink_parts._SERVER_FACTORY, server_factory())
    return folder


def test_java_s_servers_are_given_the_whole_address_and_not_its_port_alone() -> None:
    before = server_factory()
    mended = flink_parts.at_the_named_address(before)
    assert mended.endswith(b"\x00\x00\x00\xb8\x00\x0c")
    assert struct.unpack_from(">H", mended, 8) == (16,)
    assert b"forAddress" in mended
    assert b"(Ljava/net/SocketAddress;)L" in mended
    for other in (before[:-6], before + before[-6:], before.replace(b"forPort", b"ForPort")):
        with pytest.raises(InputError):
            flink_parts.at_the_named_address(other)


def test_the_main_jar_names_all_the_others_in_lines_that_java_can_read(tmp_path: Path) -> None:
    names = [f"lib/{jar.file_name}" for jar in locked_jars()]
    flink_parts._write_main_jar(core_alone(tmp_path), locked_jars())

    with zipfile.ZipFile(tmp_path / "job-server-loopback.jar") as archive:
        manifest = archive.read("META-INF/MANIFEST.MF")
    assert max(map(len, manifest.split(b"\r\n"))) <= 72
    unfolded = manifest.decode().replace("\r\n ", "")
    assert f"Class-Path: {' '.join(names)}\r\n" in unfolded


def test_a_cluster_that_is_there_is_not_fetched_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (cluster_folder() / "bin").mkdir(parents=True)
    (cluster_folder() / "bin" / "jobmanager.sh").touch()
    (jar,) = (core_alone(job_server_folder()) / "lib").iterdir()
    (core,) = (jar for jar in locked_jars() if jar.name == flink_parts._CORE)
    there = [replace(core, sha256=sha256_hex(jar.read_bytes()))]
    monkeypatch.setattr(subprocess, "run", None)

    found = setup_flink(lambda line: pytest.fail(line), there)

    assert found.split() == [
        *("job", "server", str(job_server_jar())),
        *("FLINK_HOME", str(cluster_folder())),
    ]
