"""The product on real OpenSearch and Elasticsearch: latency, and bytes and recall by quantization."""
