"""`streamgauge env`: compiled kernels, downloads, an archive for executors, dashboards."""
