"""OpenSearch and Elasticsearch: one backend over two client libraries."""
