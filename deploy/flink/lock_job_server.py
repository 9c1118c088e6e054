"""Write the lock of Beam's Flink job server: every jar it needs, with its SHA-256.

    python deploy/flink/lock_job_server.py 2.62.0 1.19 > flink_job_server.txt

Maven resolves the dependencies of beam-runners-flink-<Flink>; the jars it fetches are hashed. Run
this again when Beam's Java version or Flink's changes, put its output into transforms/engines/data,
and change the two versions in transforms/engines/flink_parts.py.
"""

import hashlib
import re
import subprocess
import sys
import tempfile
from pathlib import Path

PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1"
POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>eqforge</groupId><artifactId>job-server</artifactId><version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.beam</groupId><artifactId>beam-runners-flink-{flink}</artifactId><version>{beam}</version>
    </dependency>
    <dependency>
      <groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>1.7.30</version>
    </dependency>
  </dependencies>
</project>
"""
HEADER = "# Jars of Beam's Flink job server, by deploy/flink/lock_job_server.py {beam} {flink}"


def main(beam: str, flink: str) -> None:
    """Resolves the jars, fetches them and prints the lock."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "pom.xml").write_text(POM.format(beam=beam, flink=flink))
        maven = ["mvn", "--batch-mode", "--quiet", "-DincludeScope=runtime"]
        subprocess.run(
            [*maven, f"{PLUGIN}:list", "-DoutputFile=list.txt", f"{PLUGIN}:copy-dependencies"],
            cwd=folder, stdout=sys.stderr, check=True,
        )  # fmt: skip
        found = re.findall(
            r"^ +([^\s:]+):([^\s:]+):jar:([^\s:]+):(?:compile|runtime)",
            (Path(folder) / "list.txt").read_text(),
            re.MULTILINE,
        )
        print(HEADER.format(beam=beam, flink=flink))
        for group, name, version in sorted(found):
            jar = Path(folder) / "target" / "dependency" / f"{name}-{version}.jar"
            print(f"{group}:{name}:{version} {hashlib.sha256(jar.read_bytes()).hexdigest()}")


if __name__ == "__main__":
    main(*sys.argv[1:])
