# The API, for a PostgreSQL of its own: docker-compose.yml is the shape of a whole installation.
# Everything comes by its hash: the base image by its digest, packages from requirements.lock, and what builds ours from
# requirements-build.lock.

FROM python:3.11.16-slim-bookworm@sha256:a36c24f9cbdf4fd0f52d67f0823eeac19c2028c637cecc392d97f980d4fec56b AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN python -m venv /opt/dither
WORKDIR /src
# Dependencies change rarely: a layer of their own.
COPY requirements.lock requirements-build.lock ./
RUN /opt/dither/bin/pip install --no-deps --require-hashes -r requirements.lock \
 && python -m venv /opt/build \
 && /opt/build/bin/pip install --no-deps --require-hashes -r requirements-build.lock
COPY pyproject.toml README.md LICENSE ./
COPY client client
COPY migrations migrations
COPY app app
# The wheel of the service carries the migrations.
RUN /opt/build/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /wheels . ./client \
 && /opt/dither/bin/pip install --no-deps --no-index /wheels/*.whl

FROM python:3.11.16-slim-bookworm@sha256:a36c24f9cbdf4fd0f52d67f0823eeac19c2028c637cecc392d97f980d4fec56b
RUN groupadd --system --gid 10001 dither \
 && useradd --system --uid 10001 --gid dither --create-home --home-dir /var/lib/dither --shell /usr/sbin/nologin dither \
 && chmod 700 /var/lib/dither
COPY --from=build /opt/dither /opt/dither
ENV PATH=/opt/dither/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    DITHER_DATA_DIR=/var/lib/dither \
    DITHER_HOST=0.0.0.0 \
    DITHER_PORT=8000 \
    DITHER_WORKERS=2
USER 10001:10001
WORKDIR /var/lib/dither
# admin.token and, unless DITHER_SUBJECT_KEY is set, subject.key. Back it up with the database: a lost key
# means that no person's budget can be found again.
VOLUME ["/var/lib/dither"]
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request; urllib.request.urlopen(f\"http://127.0.0.1:{os.environ['DITHER_PORT']}/health/ready\", timeout=4)"]
ENTRYPOINT ["dither"]
CMD ["serve"]
