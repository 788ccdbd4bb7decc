"""The environments of a configuration: how they are made, their samplers, workers and held-out tasks."""
