"""The on-disk queue between the forwarder and the recorder."""
