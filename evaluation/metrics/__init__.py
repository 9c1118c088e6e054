"""The papers' metrics, as pure functions on arrays: no files, no models, no random numbers."""
