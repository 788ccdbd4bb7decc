"""A server of episodes over HTTP, in the protocol of affinetes' containers (``gamespiel serve``)."""
