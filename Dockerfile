# The server in an image: hash-locked packages, the knowledge base built in, an unprivileged user, a root that may be
# read-only.
#   docker build -t advisor .
#   docker run -p 8080:8080 -e ADVISOR_API_KEYS=me:a-long-random-key -v advisor-data:/data --read-only --tmpfs /tmp advisor
FROM python:3.11-slim AS build
WORKDIR /src
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN python -m venv /venv
COPY requirements.lock ./
RUN /venv/bin/pip install --quiet --require-hashes -r requirements.lock
COPY pyproject.toml README.md LICENSE ./
COPY knowledge knowledge
COPY tools tools
COPY advisor advisor
COPY integrations integrations
COPY evals evals
RUN /venv/bin/pip install --quiet --no-deps --no-build-isolation --no-index . \
    && cd / && /venv/bin/python -m knowledge.build

FROM python:3.11-slim
RUN useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin advisor && install -d -o advisor -g advisor /data
COPY --from=build /venv /venv
ENV PATH=/venv/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    ADVISOR_HOST=0.0.0.0 \
    ADVISOR_PORT=8080 \
    ADVISOR_DATABASE_URL=/data/advisor.db
USER advisor
WORKDIR /data
VOLUME /data
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s \
    CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8080/livez', timeout=2)"]
CMD ["advisor", "serve"]
