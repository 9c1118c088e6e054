# eqforge with WordNet; started without a command, it runs the demo.
#
#   docker build -t eqforge .                                          videos and captions, 2 GB
#   docker build -t eqforge --build-arg EXTRAS="models render" .       everything, 9 GB
#   docker run --rm -v "$PWD/out:/data/out" eqforge
#   docker run --rm -v "$PWD:/data" eqforge build eq-video --captions mine.jsonl --videos videos --output out/own
ARG BASE=python:3.11-slim-bookworm
FROM ${BASE}

# Libraries that Blender's Python module links to come only with it.
ARG EXTRAS=""
RUN case " ${EXTRAS} " in *" render "*) \
        apt-get update -qq && apt-get install --yes -qq --no-install-recommends \
            libx11-6 libxrender1 libxxf86vm1 libxfixes3 libxi6 libxkbcommon0 libsm6 libgl1 libgomp1 \
        && rm -rf /var/lib/apt/lists/* ;; \
    esac

WORKDIR /opt/eqforge
COPY requirements requirements
# The locks pin every package by its hash; setuptools builds those that have no wheel.
RUN python3 -m venv venv \
    && awk '/^[a-z]/ { wanted = /^setuptools==/ } wanted' requirements/base.lock >/tmp/setuptools.lock \
    && for lock in /tmp/setuptools.lock requirements/base.lock $(printf 'requirements/%s.lock ' ${EXTRAS:-base}); do \
        venv/bin/pip install --quiet --no-cache-dir --no-deps --require-hashes --no-build-isolation -r "$lock" || exit 1; \
    done

COPY pyproject.toml setup.py README.md LICENSE ./
COPY src src
COPY core core
COPY evaluation evaluation
COPY generators generators
COPY models models
COPY pipelines pipelines
COPY schemas schemas
COPY sources sources
COPY transforms transforms
RUN venv/bin/pip install --quiet --no-cache-dir --no-deps --no-build-isolation .

# WordNet is kept here, whichever user a container runs as; without it the demo leaves out what needs it.
ENV EQFORGE_CACHE=/opt/eqforge/cache PATH=/opt/eqforge/venv/bin:$PATH
RUN apt-get update -qq && (eqforge setup wordnet || true) && rm -rf /var/lib/apt/lists/*

WORKDIR /data
ENTRYPOINT ["eqforge"]
CMD ["demo"]
