"""The product on real servers: latency, and bytes and recall by quantization."""
