"""The parts of Flink: Beam's job server, from Maven, and a cluster, from two PyPI packages.

They are in eqforge's cache; only `eqforge setup flink` fetches anything. The job server is from an
older Beam than the Python package: docs/guides/scaling.md has the measurements behind the choice.
"""

import io
import re
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.files.cache import cache_folder
from eqforge.transforms.engines.install import check_digest, installing, run_tool
from eqforge.transforms.engines.java_class import pass_whole_object

BEAM_JAVA = "2.62.0"
FLINK_SERIES = "1.19"
FLINK = "1.19.3"
_LOCK = Path(__file__).parent / "data" / "flink_job_server.txt"
_MAIN_CLASS = "org.apache.beam.runners.flink.FlinkJobServerDriver"
# Named for its servers listening on the loopback only, which those of older jars did not.
_MAIN_JAR = "job-server-loopback.jar"
_CORE = "beam-sdks-java-core"
_SERVER_FACTORY = "org/apache/beam/sdk/fn/server/ServerFactory$InetSocketAddressServerFactory.class"
_NETTY = "org/apache/beam/vendor/grpc/v1p60p1/io/grpc/netty/NettyServerBuilder"
_MAVEN_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
# apache-flink holds the scripts and the configuration, apache-flink-libraries the jars.
_SCRIPTS_SHA256 = "ff572c6ffa3867c21b8a455aefb50c53c91973fd0408df594ca26cb0a7bebc77"
_JARS_SHA256 = "4a58e3a1fb7d83340bc96b6c080624c6d792d69fae5d294b96224775204a9c60"


@dataclass(frozen=True, kw_only=True, slots=True)
class Jar:
    """A jar of the job server, as in the lock file."""

    group: str
    name: str
    version: str
    sha256: str

    @property
    def file_name(self) -> str:
        """The name Maven gives the file."""
        return f"{self.name}-{self.version}.jar"


def job_server_folder() -> Path:
    """Returns the folder of the job server, whether or not it has been fetched."""
    return cache_folder() / "flink" / f"job-server-{BEAM_JAVA}-flink-{FLINK_SERIES}"


def cluster_folder() -> Path:
    """Returns FLINK_HOME, the folder of Flink, whether or not it has been fetched."""
    return cache_folder() / "flink" / f"flink-{FLINK}"


def is_our_job_server(jar: str | None) -> bool:
    """Tells whether a jar is the one that setup_flink wrote."""
    return jar == str(job_server_folder() / _MAIN_JAR)


def job_server_jar() -> Path:
    """Returns the job server's jar.

    Raises:
      InputError: it has not been fetched.
    """
    jar = job_server_folder() / _MAIN_JAR
    if not jar.is_file():
        raise InputError(
            f"Beam's job server for Flink {FLINK_SERIES} is not on this machine: run `eqforge "
            "setup flink`, or name your own by --flink_job_server_jar and its --flink_version"
        )
    return jar


def setup_flink(report: Callable[[str], None], jars: Sequence[Jar] | None = None) -> str:
    """Installs Flink for this user; returns the location of each part, one per line.

    Parts that are already complete are kept. Java itself has to be installed.

    Args:
      report: called with a line on each step.
      jars: those of the job server; None for the ones in the lock file.

    Raises:
      InputError: Maven or pip is missing or failed, or a download is not what eqforge was tested
        with.
    """
    jars = jars or locked_jars()
    if not _has_whole_jars(jars):
        report(f"fetching Beam's job server {BEAM_JAVA} for Flink {FLINK_SERIES} by Maven, 160 MB")
        _fetch_jars(jars)
    _write_main_jar(job_server_folder(), jars)
    if not (cluster_folder() / "bin" / "jobmanager.sh").is_file():
        report(f"fetching Flink {FLINK} by pip, 230 MB")
        _fetch_cluster()
    return f"job server  {job_server_jar()}\nFLINK_HOME  {cluster_folder()}"


def locked_jars() -> tuple[Jar, ...]:
    """Returns the jars of the job server."""
    pattern = re.compile(r"(\S+):(\S+):(\S+) ([0-9a-f]{64})")
    found = map(pattern.fullmatch, _LOCK.read_text(encoding="utf-8").splitlines())
    return tuple(
        Jar(group=match[1], name=match[2], version=match[3], sha256=match[4])
        for match in found
        if match
    )


def _has_whole_jars(jars: Sequence[Jar]) -> bool:
    folder = job_server_folder() / "lib"
    return all(
        (path := folder / jar.file_name).is_file() and storage.digest(str(path))[1] == jar.sha256
        for jar in jars
    )


def _fetch_jars(jars: Sequence[Jar]) -> None:
    with installing(job_server_folder()) as new, tempfile.TemporaryDirectory() as repository:
        (new / "pom.xml").write_text(_pom(jars), encoding="utf-8")
        run_tool(
            *("mvn", "--batch-mode", "--quiet", f"-Dmaven.repo.local={repository}", _MAVEN_COPY),
            f"-DoutputDirectory={new / 'lib'}",
            folder=new,
            needs="Maven (Debian's package maven)",
        )
        for jar in jars:
            check_digest(new / "lib" / jar.file_name, jar.sha256)


def _pom(jars: Sequence[Jar]) -> str:
    """Returns a Maven project with exactly these jars, without transitive dependencies."""
    every = "<exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion>"
    needs = "\n".join(
        f"<dependency><groupId>{jar.group}</groupId><artifactId>{jar.name}</artifactId>"
        f"<version>{jar.version}</version><exclusions>{every}</exclusions></dependency>"
        for jar in jars
    )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>\n'
        "<groupId>eqforge</groupId><artifactId>job-server</artifactId><version>1</version>\n"
        f"<dependencies>\n{needs}\n</dependencies></project>\n"
    )


def _write_main_jar(folder: Path, jars: Sequence[Jar]) -> None:
    """Writes a jar for `java -jar`: it lists the jars in `lib`, and patches one of their classes.

    Java loads a class from the first jar that has it, and this one comes first; TaskManagers get
    the jars in the same order.
    """
    (core,) = (jar for jar in jars if jar.name == _CORE)
    with zipfile.ZipFile(folder / "lib" / core.file_name) as archive:
        server_factory = at_the_named_address(archive.read(_SERVER_FACTORY))
    lines = ["Manifest-Version: 1.0", f"Main-Class: {_MAIN_CLASS}"]
    lines += _folded(f"Class-Path: {' '.join(f'lib/{jar.file_name}' for jar in jars)}")
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("META-INF/MANIFEST.MF", "\r\n".join([*lines, "", ""]))
        archive.writestr(_SERVER_FACTORY, server_factory)
    storage.write_bytes(str(folder / _MAIN_JAR), content.getvalue())


def at_the_named_address(server_factory: bytes) -> bytes:
    """Patches the class that opens Beam's ports in Java to listen on the address it is given.

    Beam uses only the port of that address: every server then listens on all interfaces, without
    authentication.

    Args:
      server_factory: the class as Beam compiled it.

    Raises:
      InputError: it is not the class of the pinned Beam.
    """
    return pass_whole_object(
        server_factory,
        getter=("java/net/InetSocketAddress", "getPort", "()I"),
        called=(_NETTY, "forPort", f"(I)L{_NETTY};"),
        instead=("forAddress", f"(Ljava/net/SocketAddress;)L{_NETTY};"),
    )


def _folded(line: str) -> Iterator[str]:
    """Yields a manifest's line folded, as none may exceed 72 bytes."""
    yield line[:70]
    for start in range(70, len(line), 69):
        yield f" {line[start : start + 69]}"


def _fetch_cluster() -> None:
    with installing(cluster_folder()) as new, tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        # The scripts are the same in the packages for all platforms.
        binary = ("--only-binary=:all:", "--platform=manylinux2014_x86_64", "--python-version=3.11")
        _pip_download(folder, f"apache-flink=={FLINK}", *binary)
        _pip_download(folder, f"apache-flink-libraries=={FLINK}")
        (scripts,), (jars,) = folder.glob("apache_flink-*.whl"), folder.glob("*.tar.gz")
        check_digest(scripts, _SCRIPTS_SHA256)
        check_digest(jars, _JARS_SHA256)
        _unpack_jars(jars, new)
        _unpack_scripts(scripts, new)


def _pip_download(folder: Path, requirement: str, *options: str) -> None:
    run_tool(
        *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", "."),
        *(*options, requirement),
        folder=folder,
        needs="pip",
    )


def _unpack_jars(archive: Path, home: Path) -> None:
    """Unpacks the folder `deps` of the source package: lib, plugins, licences."""
    with tarfile.open(archive) as source:
        for member in source:
            _, _, name = member.name.partition("/")
            if member.isfile() and name.startswith(("deps/", "LICENSE", "NOTICE")):
                member.name = name.removeprefix("deps/")
                source.extract(member, home, filter="data")


def _unpack_scripts(archive: Path, home: Path) -> None:
    """Unpacks the folders `bin` and `conf` of the wheel."""
    with zipfile.ZipFile(archive) as source:
        for name in source.namelist():
            if name.startswith(("pyflink/bin/", "pyflink/conf/")) and not name.endswith("/"):
                target = home / name.removeprefix("pyflink/")
                target.parent.mkdir(exist_ok=True)
                target.write_bytes(source.read(name))
                target.chmod(0o755 if target.parent.name == "bin" else 0o644)
