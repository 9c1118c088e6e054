"""Child processes: sandboxed decoders and renderers that end with their parent."""
