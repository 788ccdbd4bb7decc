"""A trained model for others: merged, published, or served by vLLM."""
