# A worker that ingests each file that is moved into /inbox, as described in docs/examples.md.
FROM python:3.12-slim
ENV HOME=/app PATH=/app/.local/bin:$PATH
WORKDIR /app
RUN chmod 777 .
USER 1000
COPY hybrid_span_search-*.whl ./
RUN pip install --no-cache-dir "$(echo ./hybrid_span_search-*.whl)[cpu,parquet,metrics]"
# the installed program works
RUN hybrid-search best-spans "refund request" --text "I want my money back."
VOLUME /inbox
EXPOSE 9108
ENTRYPOINT ["hybrid-search", "ingest", "--follow", "/inbox", "--log-format", "json", "--metrics-port", "9108", "--metrics-host", "0.0.0.0"]
