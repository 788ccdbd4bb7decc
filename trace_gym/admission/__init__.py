"""Which programs a sound question can be asked about, and what running them costs."""
