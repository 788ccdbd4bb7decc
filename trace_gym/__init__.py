"""Code tracing: programs, and what is asked of whoever predicts their output."""
