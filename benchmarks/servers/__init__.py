"""The product on real OpenSearch and Elasticsearch: latency beside plain queries, bytes and recall
by quantization.
"""
