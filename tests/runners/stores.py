"""Object stores in their own protocols, as programs in Go that keep everything in memory.

fake-gcs-server answers as Google Cloud Storage does, gofakes3 as S3.
"""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fsspec

from eqforge.core.files.disk import cache_folder
from tests.runners.tiers import free_ports, wait_for_port

SERVERS = {
    "gs": "github.com/fsouza/fake-gcs-server@v1.56.1",
    "s3": "github.com/johannesboyne/gofakes3/cmd/gofakes3@v1.2.0",
}


@dataclass(frozen=True)
class Store:
    """A store that runs: its scheme, what a user's environment says of it, and its files."""

    scheme: str
    url: str
    variables: dict[str, str]
    files: Any

    @property
    def output(self) -> str:
        return f"{self.scheme}://bucket/out"

    def behind(self, url: str) -> dict[str, str]:
        return {name: url if value == self.url else value for name, value in self.variables.items()}

    def dataset_bytes(self) -> dict[str, bytes]:
        self.files.invalidate_cache()
        names = (path.removeprefix("bucket/out/") for path in self.files.find("bucket/out"))
        finished = (name for name in names if not name.startswith("_work/"))
        return {name: self.files.cat_file(f"bucket/out/{name}") for name in finished}

    def written(self, folder: str) -> dict[str, Any]:
        self.files.invalidate_cache()
        found = self.files.find(f"bucket/out/{folder}", detail=True)
        time = {"gs": "updated", "s3": "LastModified"}[self.scheme]
        return {path: str(info[time]) for path, info in found.items() if info["type"] == "file"}


def server(scheme: str) -> Path:
    folder = cache_folder() / "tests" / SERVERS[scheme].rpartition("/")[2]
    if not folder.is_dir():
        new = folder.with_name(f".{folder.name}-{os.getpid()}")
        subprocess.run(
            ["go", "install", SERVERS[scheme]], env=os.environ | {"GOBIN": str(new)}, check=True
        )
        new.rename(folder)
    return next(folder.iterdir())


def open_store(scheme: str, url: str) -> Store:
    if scheme == "gs":
        variables = {"STORAGE_EMULATOR_HOST": url, "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false"}
        files = fsspec.filesystem("gs", endpoint_url=url, token="anon", project="test")
    else:
        keys = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}
        # gofakes3 gives the checksum of the whole object for a part of it too.
        checks = {"AWS_RESPONSE_CHECKSUM_VALIDATION": "when_required"}
        region = {"AWS_DEFAULT_REGION": "us-east-1"}
        variables = {"AWS_ENDPOINT_URL": url, **region, **keys, **checks}
        files = fsspec.filesystem("s3", key="key", secret="secret", endpoint_url=url)
    files.mkdir("bucket")
    return Store(scheme, url, variables, files)


@contextlib.contextmanager
def running_store(scheme: str) -> Iterator[Store]:
    """An object store of its own, during the block."""
    port = free_ports(1)[0]
    address = f"localhost:{port}"
    arguments = {
        "gs": ["-scheme", "http", "-port", str(port), "-external-url", f"http://{address}"],
        "s3": ["-host", address],
    }
    command = [str(server(scheme)), *arguments[scheme], "-backend", "memory"]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for_port(port)
        yield open_store(scheme, f"http://{address}")
    finally:
        running.kill()
        running.wait()
