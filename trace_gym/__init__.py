"""Code tracing: predict what a Python program with debug prints in it writes to stdout."""
