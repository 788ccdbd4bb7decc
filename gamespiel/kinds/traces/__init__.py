"""Code tracing as a kind of task."""
