"""The test clock: moved over HTTP and from the command line, one due instant after the other."""
