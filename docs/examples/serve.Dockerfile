# The service and its page, as described in docs/examples.md. Beside this file lies the wheel.
FROM python:3.12-slim
ENV HOME=/app PATH=/app/.local/bin:$PATH HYBRID_SEARCH_URL=embedded:/data
WORKDIR /app
RUN chmod 777 .
USER 1000
COPY hybrid_span_search-*.whl ./
RUN pip install --no-cache-dir "$(echo ./hybrid_span_search-*.whl)[cpu,serve]"
# the installed program works
RUN hybrid-search best-spans "refund request" --text "I want my money back."
VOLUME /data
EXPOSE 8080
HEALTHCHECK CMD ["python", "-c", "from urllib import request; request.urlopen('http://127.0.0.1:8080/healthz')"]
ENTRYPOINT ["hybrid-search", "serve", "--host", "0.0.0.0", "--token-file", "/run/secrets/token"]
