"""A server of episodes over HTTP, in the protocol of affinetes' containers (``gamespiel serve``)."""

from gamespiel.serving.options import ServeOptions

__all__ = ["ServeOptions"]
