"""The report and the progress display of `kiebitz interop`."""
